"""`kctl spark-sql`: its options in `app`, and what it does."""
