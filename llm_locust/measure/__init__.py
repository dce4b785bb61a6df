"""From arrivals to numbers: timeline, record and outcome, metric table, histograms, aggregate, snapshot, SLOs.

Knows no I/O, no clock and no Locust: instants come in as integer nanoseconds.
"""
