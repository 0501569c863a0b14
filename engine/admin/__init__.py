"""Administrative requests: creating and extending topics, changing settings (ZkAdminManager)."""
