"""How the partitions of topics are given to the members of a consumer group, as clients do it."""
