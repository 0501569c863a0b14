"""`kctl exporter`: metrics of a cluster for Prometheus."""
