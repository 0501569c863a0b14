"""Dumps of log files: exactly Kafka's own lines, or rows for the other formats."""
