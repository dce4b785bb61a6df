"""Tests of the metrics: known answers and properties, without a socket or a clock."""
