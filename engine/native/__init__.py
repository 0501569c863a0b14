"""Compiled code: kept on disk, loaded, made; and its plain twin."""
