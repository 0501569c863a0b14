"""The log cleaner: compaction of logs by key."""
