"""`kctl diff`: its options in `app`, and what it does."""
