"""`kctl topics`: its options in `app`, and what it does."""
