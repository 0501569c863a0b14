"""A broker of Kafka 3.9.1 and one of ours behind the same listeners, users and rules."""
