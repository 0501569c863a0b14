"""`kctl compat`: its options in `app`, and what it does."""
