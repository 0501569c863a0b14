"""Ports, the interfaces to the machine, and their real and in-memory implementations."""
