"""`kctl check`: its options in `app`, and what it does."""
