"""Kafka Streams on embedded brokers that are killed meanwhile."""
