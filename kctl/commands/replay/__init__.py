"""`kctl replay`: its options in `app`, and what it does."""
