"""`kctl spark-shell`."""
