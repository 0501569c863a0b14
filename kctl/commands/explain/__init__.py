"""`kctl explain`: its options in `app`, and what it does."""
