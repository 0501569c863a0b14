"""`kctl audit`: its options in `app`, and what it does."""
