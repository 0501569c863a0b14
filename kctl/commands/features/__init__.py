"""`kctl features`: its options in `app`, and what it does."""
