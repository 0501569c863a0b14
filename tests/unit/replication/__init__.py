"""Tests of the replication room."""
