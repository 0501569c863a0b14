"""`kctl users`: its options in `app`, and what it does."""
