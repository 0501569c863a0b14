"""The engine behind kctl: Kafka's records, files, wire protocol and cluster in Python."""

__version__ = "0.1.0"
