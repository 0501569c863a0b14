"""`kctl acls`: its options in `app`, and what it does."""
