"""Schemas of Kafka's messages as text, one module per release; read by `engine.wire.schema`."""
