"""Offline work on logs: verifies, repairs and compares them, and returns findings."""
