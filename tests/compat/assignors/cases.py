"""Cases for assignors: topics with racks; members with topics, racks, instance ids and a past.

The past of a case: partitions were dealt to members in a generation. Some members missed it and
claim what they had in an older one, some claim what another has, or say no generation; topics were
deleted, or are not subscribed to any more.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

from engine.assignors.errors import NoAssignment
from engine.assignors.registry import ASSIGNORS
from engine.assignors.subscription import NO_GENERATION, PartitionRacks, Subscription
from engine.assignors.user_data import (
    PreviousAssignment,
    encode_generation,
    encode_previous_assignment,
)
from engine.model import TopicPartition

_RACKS = ("r1", "r2", "r3")
_TOPICS = ("orders", "Orders", "a.b", "z-1", "t", "τ", "payments", "audit-log", "u", "v", "w")
_GENERATION = 7

Case = dict[str, Any]


def case_of(seed: int, *, strange: bool = True) -> Case:
    """Return the case of a seed, as JSON has it; `strange` are claims that cannot be true."""
    draw = Random(f"assignor {seed}")
    assignor = draw.choice(sorted(ASSIGNORS))
    if strange and assignor.endswith("sticky") and draw.random() < 0.15:
        return _tangled(draw, assignor)
    topics = _topics(draw)
    members = _members(draw, list(topics))
    if assignor.endswith("sticky") and draw.random() < 0.8:
        claims = _claims(draw, topics, members, strange=strange)
        for member_id, claim in claims.items():
            members[member_id] |= _told(draw, assignor, *claim)
    return {"assignor": assignor, "topics": topics, "members": members}


def _topics(draw: Random) -> dict[str, list[list[str]]]:
    names = draw.sample(_TOPICS, draw.randint(1, 4) if draw.random() < 0.8 else 9)
    are_alike = draw.random() < 0.4
    size = draw.randint(1, 9)
    has_racks = draw.random() < 0.6
    return {
        name: _partitions(
            draw, size if are_alike else draw.choice((0, 1, 2, 3, 5, 8, 13)), has_racks=has_racks
        )
        for name in names
    }


def _partitions(draw: Random, count: int, *, has_racks: bool) -> list[list[str]]:
    if not has_racks:
        return [[] for _ in range(count)]
    if draw.random() < 0.3:
        return [["r1", "r2"] for _ in range(count)]
    return [
        draw.sample(_RACKS, draw.randint(0 if draw.random() < 0.1 else 1, 3)) for _ in range(count)
    ]


def _members(draw: Random, names: list[str]) -> dict[str, Case]:
    same_topics = draw.sample([*names, "missing"], draw.randint(1, len(names)))
    has_same = draw.random() < 0.6
    has_racks = draw.random() < 0.7
    count = draw.randint(1, 7) if draw.random() < 0.85 else draw.randint(13, 30)
    members = {}
    for number in range(count):
        wanted = same_topics if has_same else draw.sample(names, draw.randint(1, len(names)))
        members[f"{draw.choice('aAbz')}-{number}"] = {
            "topics": [] if draw.random() < 0.02 else wanted,
            "rack": draw.choice((None, *_RACKS, "far")) if has_racks else None,
            "instance": f"i{draw.randint(0, 99)}-{number}" if draw.random() < 0.3 else None,
        }
    return members


Claim = tuple[list[TopicPartition], int]


def _tangled(draw: Random, assignor: str) -> Case:
    """Return a case in which partitions move on after they have moved, and back.

    Few members have most partitions; others claim many of older generations.
    """
    topics = {
        name: _partitions(draw, draw.randint(4, 20), has_racks=False)
        for name in draw.sample(_TOPICS, draw.randint(1, 3))
    }
    members: dict[str, Case] = {
        f"{draw.choice('abz')}-{number}": {
            "topics": draw.sample(list(topics), draw.randint(1, len(topics))),
            "rack": None,
            "instance": None,
        }
        for number in range(draw.randint(3, 8))
    }
    keys = [TopicPartition(name, row) for name, rows in topics.items() for row in range(len(rows))]
    owners: dict[TopicPartition, str] = {}
    for key in keys:
        able = [name for name, member in members.items() if key.topic in member["topics"]]
        if able and draw.random() < 0.9:
            owners[key] = able[min(len(able) - 1, int(draw.expovariate(1.2)))]
    for name, member in members.items():
        claim = [key for key in keys if owners.get(key) == name], _GENERATION
        if draw.random() < 0.4:
            past = [key for key in keys if key.topic in member["topics"] and draw.random() < 0.5]
            claim = past, draw.choice((4, 5, 6))
        member.update(_told(draw, assignor, *claim))
    # Other members may subscribe to equal topics.
    members["none"] = {"topics": ["missing"], "rack": None, "instance": None}
    return {"assignor": assignor, "topics": topics, "members": members}


def _claims(
    draw: Random, topics: dict[str, list[list[str]]], members: dict[str, Case], *, strange: bool
) -> dict[str, Claim]:
    """Return what members say they had, with its generation."""
    known = [
        TopicPartition(name, number) for name, rows in topics.items() for number in range(len(rows))
    ]
    draw.shuffle(known)
    names = [*members, *(f"gone-{n}" for n in range(draw.choice((0, 0, 1, 3))))]
    new = {name for name in members if draw.random() < 0.2}
    had = [name for name in names if name not in new]
    is_fair = draw.random() < 0.6
    claims: dict[str, Claim] = {name: ([], _GENERATION) for name in had}
    for turn, key in enumerate(known if had else ()):
        name = had[turn % len(had)] if is_fair else draw.choice(had[: draw.randint(1, len(had))])
        subscribes = name not in members or key.topic in members[name]["topics"]
        if draw.random() < (0.95 if subscribes else 0.05 * strange):
            claims[name][0].append(key)
    claims = {name: claims[name] for name in members if name in claims}
    if strange:
        for name, (keys, _) in claims.items():
            claims[name] = _strange(draw, known, topics, keys, members[name]["topics"])
    return claims


def _strange(
    draw: Random,
    known: list[TopicPartition],
    topics: dict[str, list[list[str]]],
    keys: list[TopicPartition],
    wanted: list[str],
) -> Claim:
    """Return a claim that other members may contradict."""
    if known and draw.random() < 0.2:
        others = draw.sample(known, min(len(known), draw.randint(1, 4)))
        keys = [*keys, *(key for key in others if key not in keys and key.topic in wanted)]
    if draw.random() < 0.03:
        keys = [*keys, TopicPartition("deleted", 0)]
    if draw.random() < 0.01:
        topic = draw.choice(sorted(topics))
        keys = [*keys, TopicPartition(topic, len(topics[topic]) + 2)]
    generation = draw.choice((*[_GENERATION] * 7, 5, 6, 9, NO_GENERATION))
    return keys, generation


def _told(draw: Random, assignor: str, keys: list[TopicPartition], generation: int) -> Case:
    """Return the fields of a subscription that tell a claim."""
    if assignor == "cooperative-sticky":
        as_user_data = draw.random() < 0.15
        user_data = encode_generation(generation)
        return {
            "owned": keys,
            "generation": NO_GENERATION if as_user_data else generation,
            "user_data": draw.choice((user_data, user_data, b"\0")).hex() if as_user_data else None,
        }
    user_data = encode_previous_assignment(PreviousAssignment(tuple(keys), generation))
    kind = draw.random()
    if kind < 0.1:
        user_data = user_data[:-4]
    elif kind < 0.13:
        user_data = user_data[: draw.randint(0, len(user_data))]
    told = generation if draw.random() < 0.8 else NO_GENERATION
    return {"owned": [], "generation": told, "user_data": user_data.hex()}


def assigned(case: Case) -> dict[str, list[str]] | None:
    """Return what our assignor makes of a case, as the Java program prints it; None if nothing."""
    topics = {
        name: [PartitionRacks(number, frozenset(racks)) for number, racks in enumerate(rows)]
        for name, rows in case["topics"].items()
    }
    subscriptions = {name: subscription_of(member) for name, member in case["members"].items()}
    try:
        assignment = ASSIGNORS[case["assignor"]].assign(topics, subscriptions)
    except NoAssignment:
        return None
    return {member_id: _texts(partitions) for member_id, partitions in assignment.items()}


def subscription_of(member: Case) -> Subscription:
    """Return the subscription of a member of a case."""
    user_data = member.get("user_data")
    return Subscription(
        tuple(member["topics"]),
        member["instance"],
        member["rack"],
        tuple(TopicPartition(*key) for key in member.get("owned", ())),
        member.get("generation", NO_GENERATION),
        None if user_data is None else bytes.fromhex(user_data),
    )


def _texts(partitions: list[TopicPartition]) -> list[str]:
    return [f"{key.topic}-{key.partition}" for key in partitions]


def in_order(assignment: dict[str, list[str]] | None) -> dict[str, list[str]] | None:
    """Return an assignment with the partitions of each member in order, which means nothing."""
    if assignment is None:
        return None
    return {member_id: sorted(keys) for member_id, keys in assignment.items()}


def line_of(case: Case) -> str:
    """Return a case in one line."""
    return json.dumps(case, separators=(",", ":"))
