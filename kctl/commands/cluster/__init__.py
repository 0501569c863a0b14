"""`kctl cluster`: its options in `app`, and what it does."""
