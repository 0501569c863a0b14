"""Compiled code: caching, loading and compiling it, and versions of it in plain Python."""
