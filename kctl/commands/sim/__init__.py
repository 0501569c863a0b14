"""`kctl sim`: its options in `app`, and what it does."""
