"""Proofs of what the suite promises, on the whole product: real masters, workers and servers, and their own truth."""
