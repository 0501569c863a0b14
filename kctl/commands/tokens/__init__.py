"""`kctl tokens`: its options in `app`, and what it does."""
