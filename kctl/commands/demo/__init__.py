"""`kctl demo`: its options in `app`, and what it does."""
