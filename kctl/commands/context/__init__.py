"""`kctl context`: its options in `app`, and what it does."""
