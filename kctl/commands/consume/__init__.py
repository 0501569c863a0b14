"""`kctl consume`: its options in `app`, and what it does."""
