"""Deadlines and delayed operations: pure, with the time from the owner of the loop."""
