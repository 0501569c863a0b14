"""Assignors: the examples of Kafka's documentation, promises, and what Kafka's classes gave."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.assignors.range import assign_range
from engine.assignors.registry import ASSIGNORS, RebalanceProtocol
from engine.assignors.round_robin import assign_round_robin
from engine.assignors.subscription import PartitionRacks, Subscription, members_in_order
from tests.compat.assignors.cases import assigned, case_of, in_order

_GOLDEN = Path(__file__).parents[2] / "golden" / "assignors.jsonl"
_CASES = [json.loads(line) for line in _GOLDEN.read_text().splitlines()]
_BOTH = Subscription(("t0", "t1"))


def partitions(count: int) -> list[PartitionRacks]:
    return [PartitionRacks(number) for number in range(count)]


def shown(assignment: dict[str, Any]) -> dict[str, str]:
    return {
        member: " ".join(f"{key.topic}p{key.partition}" for key in keys)
        for member, keys in assignment.items()
    }


def test_ranges_of_topics_with_four_partitions_are_even() -> None:
    topics = {"t0": partitions(4), "t1": partitions(4)}
    assert {"C0": "t0p0 t0p1 t1p0 t1p1", "C1": "t0p2 t0p3 t1p2 t1p3"} == shown(
        assign_range(topics, {"C0": _BOTH, "C1": _BOTH})
    )


def test_ranges_of_topics_with_three_partitions_burden_the_first_member() -> None:
    topics = {"t0": partitions(3), "t1": partitions(3)}
    assert {"C0": "t0p0 t0p1 t1p0 t1p1", "C1": "t0p2 t1p2"} == shown(
        assign_range(topics, {"C0": _BOTH, "C1": _BOTH})
    )


def test_round_robin_deals_all_partitions_in_turn() -> None:
    topics = {"t0": partitions(3), "t1": partitions(3)}
    assert {"C0": "t0p0 t0p2 t1p1", "C1": "t0p1 t1p0 t1p2"} == shown(
        assign_round_robin(topics, {"C1": _BOTH, "C0": _BOTH})
    )


def test_round_robin_passes_over_members_that_do_not_subscribe() -> None:
    topics = {"t0": partitions(1), "t1": partitions(2), "t2": partitions(3)}
    members = {
        "C0": Subscription(("t0",)),
        "C1": Subscription(("t0", "t1")),
        "C2": Subscription(("t0", "t1", "t2")),
    }
    assert {"C0": "t0p0", "C1": "t1p0", "C2": "t1p1 t2p0 t2p1 t2p2"} == shown(
        assign_round_robin(topics, members)
    )


def test_a_range_goes_to_members_in_the_racks_of_its_replicas() -> None:
    racks = [PartitionRacks(number, frozenset({f"r{1 - number}"})) for number in range(2)]
    members = {
        "C0": Subscription(("t",), rack_id="r0"),
        "C1": Subscription(("t",), rack_id="r1"),
    }
    assert {"C0": "tp1", "C1": "tp0"} == shown(assign_range({"t": racks}, members))


def test_static_members_come_first_by_their_instance() -> None:
    members = {
        "a": Subscription(()),
        "B": Subscription(()),
        "x": Subscription((), "2"),
        "y": Subscription((), "1"),
    }
    assert ["y", "x", "B", "a"] == members_in_order(members)


@pytest.mark.parametrize("case", _CASES)
def test_the_assignment_is_that_of_kafkas_classes(case: dict[str, Any]) -> None:
    assert case["assigned"] == in_order(assigned(case))


def test_the_assignors_serve_the_protocols_of_kafkas_classes() -> None:
    eager, cooperative = RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE
    assert {
        "range": (eager,),
        "roundrobin": (eager,),
        "sticky": (eager,),
        "cooperative-sticky": (cooperative, eager),
    } == {name: assignor.rebalance_protocols for name, assignor in ASSIGNORS.items()}


@pytest.mark.parametrize("name", ASSIGNORS)
def test_without_members_nobody_has_anything(name: str) -> None:
    assert {} == ASSIGNORS[name].assign({"t": partitions(2)}, {})


@pytest.mark.parametrize("name", ASSIGNORS)
def test_without_topics_members_have_nothing(name: str) -> None:
    members = {"C0": Subscription(("missing",)), "C1": Subscription(("empty", "missing"))}
    assert {"C0": [], "C1": []} == ASSIGNORS[name].assign({"empty": []}, members)


@given(st.integers(min_value=0, max_value=1 << 32))
def test_each_partition_goes_to_one_member_that_wants_it(seed: int) -> None:
    case = case_of(seed, strange=False)
    assignment = assigned(case)
    assert assignment is not None
    owners = Counter(key for keys in assignment.values() for key in keys)
    wanted = {
        f"{topic}-{number}"
        for topic, rows in case["topics"].items()
        for number in range(len(rows))
        if any(topic in member["topics"] for member in case["members"].values())
    }
    given_up = case["assignor"] == "cooperative-sticky"
    assert {1} >= set(owners.values())
    assert wanted == set(owners) if not given_up else wanted >= set(owners)
    for member_id, keys in assignment.items():
        topics = case["members"][member_id]["topics"]
        assert all(key.rsplit("-", 1)[0] in topics for key in keys)


@given(
    st.lists(st.integers(min_value=0, max_value=12), min_size=1, max_size=5),
    st.integers(min_value=1, max_value=7),
)
def test_round_robin_is_balanced_where_all_subscribe_to_all(
    sizes: list[int], member_count: int
) -> None:
    topics = {f"t{number}": partitions(size) for number, size in enumerate(sizes)}
    members = {f"C{number}": Subscription(tuple(topics)) for number in range(member_count)}
    counts = [len(keys) for keys in assign_round_robin(topics, members).values()]
    assert max(counts) - min(counts) <= 1
