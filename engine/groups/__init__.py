"""Consumer groups: who is a member, which member has which partitions, what was committed."""
