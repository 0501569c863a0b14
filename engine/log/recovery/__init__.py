"""Opening the logs of a directory again, also after a crash."""
