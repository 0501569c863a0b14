"""The round-robin assignor: all partitions in order, assigned to the members in turn.

1. Members are in order; topics by name, their partitions by number.
2. Each partition goes to the next member that subscribes to its topic.

Source: RoundRobinAssignor of 3.9.1; ASG-2.
"""

from __future__ import annotations

from engine.assignors.subscription import (
    Assignment,
    Subscriptions,
    Topics,
    members_in_order,
    subscribed_topics,
)
from engine.model import TopicPartition

NAME = "roundrobin"


def assign_round_robin(topics: Topics, subscriptions: Subscriptions) -> Assignment:
    """Return the partitions of each member: all partitions are dealt to the members in turn."""
    assignment: Assignment = {member_id: [] for member_id in subscriptions}
    # 1.
    members = members_in_order(subscriptions)
    turn = 0
    for topic in subscribed_topics(topics, subscriptions):
        for row in topics[topic]:
            # 2.
            while topic not in subscriptions[members[turn % len(members)]].topics:
                turn += 1
            assignment[members[turn % len(members)]].append(TopicPartition(topic, row.partition))
            turn += 1
    return assignment
