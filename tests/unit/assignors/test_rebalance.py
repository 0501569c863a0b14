"""Rebalances that follow each other: how many there are, and what is given up."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.assignors.rebalance import given_up, is_cooperative, rebalance
from engine.assignors.registry import ASSIGNORS
from engine.assignors.subscription import PartitionRacks, Subscription

_TOPICS = {"t": [PartitionRacks(number) for number in range(4)]}
_COOPERATIVE = "cooperative-sticky"


def members_of(*names: str) -> dict[str, Subscription]:
    return dict.fromkeys(names, Subscription(("t",)))


@pytest.mark.parametrize("name", ASSIGNORS)
def test_the_first_assignment_takes_one_rebalance(name: str) -> None:
    (assignment,) = rebalance(ASSIGNORS[name], _TOPICS, members_of("a", "b"), {})
    assert 4 == sum(map(len, assignment.values()))


def test_a_member_that_joins_takes_two_cooperative_rebalances() -> None:
    assignor = ASSIGNORS[_COOPERATIVE]
    assert [_COOPERATIVE] == [name for name in ASSIGNORS if is_cooperative(ASSIGNORS[name])]
    (had,) = rebalance(assignor, _TOPICS, members_of("a"), {})
    first, second = rebalance(assignor, _TOPICS, members_of("a", "b"), had)
    assert 2 == len(given_up(had, first)) == len(first["a"]) == len(second["b"])
    assert ([], set()) == (first["b"], given_up(first, second))


@given(st.lists(st.sets(st.sampled_from("tuv"), min_size=1), min_size=2, max_size=6), st.data())
def test_cooperative_rebalances_end_with_everything_assigned(
    wanted: Sequence[set[str]], data: st.DataObject
) -> None:
    topics = {name: [PartitionRacks(number) for number in range(5)] for name in "tuv"}
    members = {f"m{n}": Subscription(tuple(sorted(names))) for n, names in enumerate(wanted)}
    staying = data.draw(st.sets(st.sampled_from(sorted(members)), min_size=1))
    had = rebalance(ASSIGNORS[_COOPERATIVE], topics, {n: members[n] for n in staying}, {})[-1]
    assignments = rebalance(ASSIGNORS[_COOPERATIVE], topics, members, had)
    assert len(assignments) <= 3
    assigned = [key for keys in assignments[-1].values() for key in keys]
    assert len(assigned) == len(set(assigned)) == 5 * len(set().union(*wanted))
