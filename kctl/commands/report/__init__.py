"""`kctl report`: its options in `app`, and what it does."""
