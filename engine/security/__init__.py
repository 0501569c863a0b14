"""Authentication, ACLs and quotas: logic without I/O."""
