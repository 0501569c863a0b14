"""`kctl completions`: its options in `app`, and what it does."""
