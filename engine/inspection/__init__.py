"""Offline work on logs: verify, repair and compare them, with findings."""
