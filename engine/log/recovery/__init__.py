"""Open the logs of a directory, also after a crash."""
