"""`kctl offsets`: its options in `app`, and what it does."""
