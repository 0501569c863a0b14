"""`kctl produce`: its options in `app`, and what it does."""
