"""Ports to the machine and their two implementations."""
