"""`kctl leaders`: its options in `app`, and what it does."""
