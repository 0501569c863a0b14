"""The transaction coordinator and the producer ids that exactly-once writes need."""
