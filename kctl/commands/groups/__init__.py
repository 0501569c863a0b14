"""`kctl groups`: its options in `app`, and what it does."""
