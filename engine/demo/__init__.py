"""Demonstrations on a cluster: a producer with a consumer, and exactly-once processing."""
