"""Replication: partitions, in-sync sets, watermarks, delayed answers, the replica manager."""
