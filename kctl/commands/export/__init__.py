"""`kctl export`: its options in `app`, and what it does."""
