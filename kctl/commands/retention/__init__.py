"""`kctl retention`: its options in `app`, and what it does."""
