"""`kctl apply`: its options in `app`, and what it does."""
