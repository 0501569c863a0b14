"""`kctl logs`: its options in `app`, and what it does."""
