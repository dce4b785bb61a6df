"""Proofs by commands: what the suite costs, how true its times are, and what the physical limit is."""
