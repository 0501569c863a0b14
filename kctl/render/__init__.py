"""Rows in; tables, JSON, YAML, CSV or NDJSON out."""
