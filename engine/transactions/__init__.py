"""The coordinator of transactions and the ids of producers, for exactly-once writes."""
