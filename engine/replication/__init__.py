"""Replication: partitions, in-sync sets, watermarks, delayed operations, the replica manager."""
