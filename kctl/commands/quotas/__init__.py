"""`kctl quotas`: its options are in `app`, its implementation in the other modules."""
