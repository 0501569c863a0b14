"""Assign the partitions of topics to the members of a consumer group, as Kafka's clients do."""
