"""Values with schemas: the sources of schemas, and decoding by schemas."""
