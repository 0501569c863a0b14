"""`kctl configs`: its options in `app`, and what it does."""
