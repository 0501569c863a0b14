"""`kctl records`: its options in `app`, and what it does."""
