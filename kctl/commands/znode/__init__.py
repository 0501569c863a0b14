"""`kctl znode`: its options in `app`, and what it does."""
