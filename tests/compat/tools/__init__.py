"""Command lines of Kafka's tools, drawn from seeds."""
