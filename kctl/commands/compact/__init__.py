"""`kctl compact`: its options in `app`, and what it does."""
