"""Cases for assignors: topics with racks, members with topics, racks and instance ids."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from engine.assignors.registry import ASSIGNORS
from engine.assignors.subscription import PartitionRacks, Subscription
from engine.model import TopicPartition

_RACKS = ("r1", "r2", "r3")
_TOPICS = ("orders", "Orders", "a.b", "z-1", "t", "τ")

Case = dict[str, Any]


def case_of(seed: int) -> Case:
    """Return the case of a seed, as JSON has it."""
    draw = Random(f"assignor {seed}")
    names = draw.sample(_TOPICS, draw.randint(1, 4))
    are_alike = draw.random() < 0.4
    size = draw.randint(1, 9)
    topics = {
        name: _partitions(draw, size if are_alike else draw.choice((0, 1, 2, 3, 5, 8, 13)))
        for name in names
    }
    same_topics = draw.sample([*names, "missing"], draw.randint(1, len(names)))
    has_same = draw.random() < 0.6
    members = {}
    for number in range(draw.randint(1, 7)):
        wanted = same_topics if has_same else draw.sample(names, draw.randint(1, len(names)))
        members[f"{draw.choice('aAbz')}-{number}"] = {
            "topics": wanted,
            "rack": draw.choice((None, *_RACKS, "far")) if draw.random() < 0.7 else None,
            "instance": f"i{draw.randint(0, 99)}-{number}" if draw.random() < 0.3 else None,
        }
    return {"assignor": draw.choice(sorted(ASSIGNORS)), "topics": topics, "members": members}


def _partitions(draw: Random, count: int) -> list[list[str]]:
    if draw.random() < 0.3:
        return [["r1", "r2"] for _ in range(count)]
    return [draw.sample(_RACKS, draw.randint(1, 3)) for _ in range(count)]


def assigned(case: Case) -> dict[str, list[str]]:
    """Return what our assignor makes of a case, as the Java program prints it."""
    topics = {
        name: [PartitionRacks(number, frozenset(racks)) for number, racks in enumerate(rows)]
        for name, rows in case["topics"].items()
    }
    subscriptions = {
        member_id: Subscription(tuple(member["topics"]), member["instance"], member["rack"])
        for member_id, member in case["members"].items()
    }
    assignment = ASSIGNORS[case["assignor"]](topics, subscriptions)
    return {member_id: _texts(partitions) for member_id, partitions in assignment.items()}


def _texts(partitions: list[TopicPartition]) -> list[str]:
    return [f"{key.topic}-{key.partition}" for key in partitions]


def line_of(case: Case) -> str:
    """Return a case in one line."""
    return json.dumps(case, separators=(",", ":"))
