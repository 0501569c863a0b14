"""`kctl reassign`: its options in `app`, and what it does."""
