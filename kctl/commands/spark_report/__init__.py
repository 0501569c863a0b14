"""`kctl spark-report`."""
