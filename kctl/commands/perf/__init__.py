"""`kctl perf`: its options in `app`, and what it does."""
