"""Stories of partitions and controllers as text: events, and the states that follow."""
