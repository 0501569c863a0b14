"""Asks a real broker what its recovery makes of damaged logs."""
