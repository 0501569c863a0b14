"""`kctl quotas`: its options in `app`, and what it does."""
