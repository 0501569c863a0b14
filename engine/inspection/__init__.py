"""Offline work on logs: verify, repair, compare, and what they find."""
