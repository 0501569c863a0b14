"""`kctl transactions`: its options in `app`, and what it does."""
