"""Programs that show a cluster at work: a producer with a consumer, and exactly-once processing."""
