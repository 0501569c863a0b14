"""`kctl events`: changes of a cluster as they are seen."""
