"""`kctl top`: its options in `app`, and what it does."""
