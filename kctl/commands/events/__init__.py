"""`kctl events`: changes of a cluster's metadata."""
