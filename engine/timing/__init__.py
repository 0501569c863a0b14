"""Deadlines and delayed operations: pure, told the time by the owner of the loop."""
