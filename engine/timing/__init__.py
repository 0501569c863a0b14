"""Deadlines and delayed operations: pure, told the time by whoever owns the loop."""
