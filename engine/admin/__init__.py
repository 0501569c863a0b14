"""Administrators' requests: topics created and extended, settings changed (ZkAdminManager)."""
