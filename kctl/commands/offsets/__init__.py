"""`kctl offsets`: its options are in `app`, its implementation in the other modules."""
