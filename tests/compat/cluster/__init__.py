"""Three brokers of Kafka and three of ours under the same drawn operations."""
