"""`kctl brokers`: its options in `app`, and what it does."""
