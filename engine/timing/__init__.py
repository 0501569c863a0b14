"""Timers, delayed operations, meters and rates: pure; callers pass the time."""
