"""`kctl copy`: its options in `app`, and what it does."""
