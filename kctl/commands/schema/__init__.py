"""`kctl schema`: its options in `app`, and what it does."""
