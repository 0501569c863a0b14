"""Keys of Kafka as text, a row each; read by `engine.config.key`."""
