"""`kctl broker`: its options in `app`, and what it does."""
