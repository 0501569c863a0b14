"""Sticky assignments: balance, what stays with its member, what is given up first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.assignors.errors import NoAssignment
from engine.assignors.sticky import assign_cooperative_sticky, assign_sticky
from engine.assignors.subscription import PartitionRacks, Subscription, Topics
from engine.assignors.user_data import PreviousAssignment, encode_previous_assignment
from engine.model import TopicPartition

Keys = Sequence[TopicPartition]


def topics_of(*sizes: int) -> dict[str, list[PartitionRacks]]:
    return {f"t{n}": [PartitionRacks(row) for row in range(size)] for n, size in enumerate(sizes)}


def keys_of(text: str) -> tuple[TopicPartition, ...]:
    """Return partitions of words such as `t0p1`."""
    words = (word.split("p") for word in text.split())
    return tuple(TopicPartition(topic, int(number)) for topic, number in words)


def shown(assignment: Mapping[str, Keys]) -> dict[str, str]:
    return {
        member_id: " ".join(f"{key.topic}p{key.partition}" for key in keys)
        for member_id, keys in assignment.items()
    }


def sticky(
    topics: str, owned: str | Keys = "", generation_id: int = 1, rack_id: str | None = None
) -> Subscription:
    """Return a member of the sticky assignor that had partitions."""
    keys = keys_of(owned) if isinstance(owned, str) else tuple(owned)
    user_data = encode_previous_assignment(PreviousAssignment(keys, generation_id))
    return Subscription(
        tuple(topics.split()),
        rack_id=rack_id,
        generation_id=generation_id,
        user_data=user_data if keys else None,
    )


def cooperative(topics: str, owned: str | Keys = "", generation_id: int = 1) -> Subscription:
    """Return a member of the cooperative sticky assignor that has partitions."""
    keys = keys_of(owned) if isinstance(owned, str) else tuple(owned)
    return Subscription(tuple(topics.split()), owned_partitions=keys, generation_id=generation_id)


def test_without_a_past_partitions_are_dealt_in_turn() -> None:
    members = dict.fromkeys(("C1", "C0"), sticky("t0 t1"))
    assert {"C0": "t0p0 t0p2 t1p0 t1p2", "C1": "t0p1 t0p3 t1p1 t1p3"} == shown(
        assign_sticky(topics_of(4, 4), members)
    )
    assert {"C0": "t0p0 t0p2 t1p1", "C1": "t0p1 t1p0 t1p2"} == shown(
        assign_sticky(topics_of(3, 3), members)
    )


def test_what_a_member_had_that_left_is_shared_and_nothing_else_moves() -> None:
    topics = "t0 t1 t2 t3"
    members = {"C0": sticky(topics, "t0p0 t1p1 t3p0"), "C2": sticky(topics, "t1p0 t2p1")}
    assert {"C0": "t0p0 t3p0 t1p1 t0p1", "C2": "t1p0 t2p1 t2p0 t3p1"} == shown(
        assign_sticky(topics_of(2, 2, 2, 2), members)
    )


def test_a_member_that_joins_is_given_only_what_others_have_too_much_of() -> None:
    members = {"C0": sticky("t0", "t0p0 t0p1 t0p2"), "C1": sticky("t0")}
    assert {"C0": "t0p0 t0p1", "C1": "t0p2"} == shown(assign_sticky(topics_of(3), members))


def test_the_members_that_keep_one_more_come_in_the_order_of_javas_map() -> None:
    # Of the sixteen chains a is in 1, X in 8, Z in 10.
    members = {"Z": sticky("t0", "t0p0 t0p1"), "a": sticky("t0", "t0p2 t0p3"), "X": sticky("t0")}
    kept = assign_sticky(topics_of(4), members)
    assert {"a": "t0p2 t0p3", "X": "t0p1", "Z": "t0p0"} == shown(kept)


def test_members_of_different_topics_are_balanced_as_far_as_possible() -> None:
    members = {"C0": sticky("t0"), "C1": sticky("t0 t1"), "C2": sticky("t0 t1 t2")}
    assert {"C0": "t0p0", "C1": "t1p0 t1p1", "C2": "t2p0 t2p1 t2p2"} == shown(
        assign_sticky(topics_of(1, 2, 3), members)
    )


def test_what_no_member_had_is_moved_before_what_one_had() -> None:
    members = {"C0": sticky("t1 t2", "t2p0 t2p1"), "C1": sticky("t0 t1 t2"), "C2": sticky("t0")}
    assert {"C0": "t2p0 t2p1", "C1": "t1p0 t2p2", "C2": "t0p0"} == shown(
        assign_sticky(topics_of(1, 1, 3), members)
    )


def test_a_topic_that_is_not_wanted_any_more_goes_to_others() -> None:
    members = {"C0": sticky("t1", "t0p0 t0p1 t1p0"), "C1": sticky("t0 t1")}
    assert {"C0": "t1p0", "C1": "t0p0 t0p1"} == shown(assign_sticky(topics_of(2, 1), members))


def test_the_claim_of_a_later_generation_counts() -> None:
    for first, second in ((1, 2), (2, 1)):
        members = {
            "C0": sticky("t0", "t0p0 t0p1", first),
            "C1": sticky("t0", "t0p0 t0p1", second),
            "C2": sticky("t0", "t0p2", 2),
        }
        found = shown(assign_sticky(topics_of(3), members))
        assert "t0p0" == found["C0" if first > second else "C1"]
        assert "t0p2" == found["C2"]


def test_a_partition_goes_back_to_its_owner_of_an_older_generation() -> None:
    members = {
        "C0": sticky("t0 t1", "t0p0 t0p1 t0p2", 2),
        "C1": sticky("t0"),
        "C2": sticky("t0", "t0p0", 1),
    }
    assert {"C0": "t0p2 t1p0", "C1": "t0p1", "C2": "t0p0"} == shown(
        assign_sticky(topics_of(3, 1), members)
    )


@pytest.mark.parametrize("member", [sticky, cooperative])
def test_what_two_members_claim_in_one_generation_is_dealt_again(member: type) -> None:
    assign = assign_sticky if member is sticky else assign_cooperative_sticky
    members = {"C0": member("t0", "t0p0 t0p1"), "C1": member("t0", "t0p1 t0p2")}
    held = " ".join(shown(assign(topics_of(4), members)).values())
    assert ("t0p1" in held) == (member is sticky)


def test_partitions_stay_and_go_where_a_replica_is_in_the_rack() -> None:
    racks = [PartitionRacks(number, frozenset({f"r{number % 2}"})) for number in range(4)]
    members = {
        "C0": sticky("t0", "t0p0 t0p1", rack_id="r0"),
        "C1": sticky("t0", "t0p2 t0p3", rack_id="r1"),
    }
    found = assign_sticky({"t0": racks}, members)
    assert {"C0": "t0p0 t0p2", "C1": "t0p3 t0p1"} == shown(found)


def test_a_partition_that_changes_its_member_is_given_up_first() -> None:
    members = {"C0": cooperative("t0", "t0p0 t0p1 t0p2"), "C1": cooperative("t0", generation_id=-1)}
    first = assign_cooperative_sticky(topics_of(3), members)
    assert {"C0": "t0p0 t0p1", "C1": ""} == shown(first)
    again = {name: cooperative("t0", keys, 2) for name, keys in first.items()}
    assert {"C0": "t0p0 t0p1", "C1": "t0p2"} == shown(
        assign_cooperative_sticky(topics_of(3), again)
    )


def test_so_it_is_among_members_of_different_topics() -> None:
    members = {"C0": cooperative("t0", "t0p0 t0p1 t0p2"), "C1": cooperative("t0 t1")}
    first = assign_cooperative_sticky(topics_of(3, 1), members)
    assert {"C0": "t0p1 t0p2", "C1": "t1p0"} == shown(first)


def test_a_generation_of_user_data_counts_where_the_subscription_has_none() -> None:
    keys = keys_of("t0p0 t0p1")
    members = {
        "C0": Subscription(("t0",), owned_partitions=keys, user_data=b"\0\0\0\1"),
        "C1": cooperative("t0", keys, 2),
    }
    assert "t0p0" == shown(assign_cooperative_sticky(topics_of(2), members))["C1"]


def test_a_member_without_topics_is_passed_over_as_topics_are_compared() -> None:
    """Kafka gives partitions to a member that wants none, if that comes first."""
    members = {"C0": sticky(""), "C1": sticky("t0")}
    assert {"C0": "t0p0", "C1": "t0p1"} == shown(assign_sticky(topics_of(2), members))


def test_a_claim_of_a_partition_that_is_not_there_any_more_is_an_error() -> None:
    with pytest.raises(NoAssignment, match="more partitions are left than members may have"):
        assign_sticky(topics_of(1), {"C0": sticky("t0", "t0p3")})


def test_a_partition_cannot_go_back_to_a_member_that_shares_no_topic() -> None:
    members = {
        "C0": sticky("t1", "t0p0", 1),
        "C1": sticky("t0", "t0p0 t0p1 t0p2", 2),
        "C2": sticky("t0", generation_id=2),
    }
    with pytest.raises(NoAssignment, match="C0, which had t0-0 once, takes no part"):
        assign_sticky(topics_of(3, 1), members)


def _request_topic_sizes() -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, 12), min_size=1, max_size=5)


def _group(
    names: Sequence[str], topics: Topics, had: Mapping[str, Keys]
) -> dict[str, Subscription]:
    return {name: sticky(" ".join(topics), had.get(name, ())) for name in names}


@given(_request_topic_sizes(), st.integers(1, 9), st.data())
def test_only_what_has_to_move_moves(sizes: list[int], count: int, data: st.DataObject) -> None:
    topics = topics_of(*sizes)
    names = [f"C{number}" for number in range(count)]
    before = assign_sticky(topics, _group(names, topics, {}))
    again = assign_sticky(topics, _group(names, topics, before))
    assert all(set(before[name]) == set(again[name]) for name in names)
    leaving = data.draw(st.sets(st.sampled_from(names), max_size=count - 1))
    stay = [name for name in names if name not in leaving]
    after = assign_sticky(topics, _group(stay, topics, before))
    assert all(set(before[name]) <= set(after[name]) for name in stay)
    joined = assign_sticky(topics, _group([*stay, "N0", "N1"], topics, after))
    assert all(set(joined[name]) <= set(after[name]) for name in stay)
    for assignment in (before, after, joined):
        counts = [len(keys) for keys in assignment.values()]
        assert max(counts) - min(counts) <= 1


@given(
    st.lists(st.integers(1, 8), min_size=2, max_size=4),
    st.lists(st.sets(st.integers(0, 3), min_size=1), min_size=2, max_size=6),
)
def test_no_member_could_have_a_partition_of_one_that_has_two_more(
    sizes: list[int], wanted: list[set[int]]
) -> None:
    topics = topics_of(*sizes)
    members = {
        f"C{number}": sticky(" ".join(f"t{n}" for n in sorted(numbers)))
        for number, numbers in enumerate(wanted)
    }
    assignment = assign_sticky(topics, members)
    for name, keys in assignment.items():
        for key in keys:
            assert all(
                len(keys) <= len(assignment[other]) + 1
                for other, member in members.items()
                if key.topic in member.topics and other != name
            )


@given(_request_topic_sizes(), st.integers(1, 6), st.integers(1, 6))
def test_two_cooperative_rebalances_give_out_everything(
    sizes: list[int], old: int, new: int
) -> None:
    topics = topics_of(*sizes)
    text = " ".join(topics)
    had = assign_sticky(topics, {f"C{n}": sticky(text) for n in range(old)})
    members = {f"C{n}": cooperative(text, had.get(f"C{n}", ()), 1) for n in range(new)}
    first = assign_cooperative_sticky(topics, members)
    for name, keys in first.items():
        taken = set(keys).difference(had.get(name, ()))
        assert not any(taken & set(had[other]) for other in had if other in members)
    second = assign_cooperative_sticky(
        topics, {name: cooperative(text, keys, 2) for name, keys in first.items()}
    )
    assert all(set(first[name]) <= set(second[name]) for name in first)
    assert sum(sizes) == sum(map(len, second.values()))
