"""The files of a log directory."""
