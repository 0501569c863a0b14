"""`kctl dump-log`: its options in `app`, and what it does."""
