"""What benchmarks and tests both stand on: processes as users start them, runs that never were, a tiny model."""
