"""Dumping log files: Kafka's own lines, and rows for everything else."""
