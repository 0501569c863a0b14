"""Authentication, access rules and quotas: rules without I/O."""
