"""Transactions of outsiders' clients, on brokers of ours or of Kafka's jars."""
