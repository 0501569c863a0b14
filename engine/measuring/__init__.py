"""Measures a cluster's throughput and latency with kctl's own producer and consumer.

`measurement` counts within a window that starts when connections are open and a warm-up is over;
`producing_run`, `consuming_run` and `latency_run` are the measured loads.
"""
