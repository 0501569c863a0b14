"""`kctl quorum`: its options in `app`, and what it does."""
