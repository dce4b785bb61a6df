"""The benchmarks themselves: what they compare, and that they run."""
