"""`kctl certs`: its options in `app`, and what it does."""
