"""What is left of a plan, and which plans are of another time."""

from __future__ import annotations

import pytest

from engine.model import TopicPartition
from engine.planner.plan import PartitionChange
from engine.reassign.execution import StalePlan
from engine.reassign.plan_reading import check_plan_is_current

CHANGES = [
    PartitionChange("t", 0, (1, 2), (2, 3), 1, 2),
    PartitionChange("t", 1, (2, 1), (3, 1), 2, 3),
]


@pytest.mark.parametrize("replicas", [((1, 2), (2, 1)), ((2, 3), (2, 1)), ((2, 3), (3, 1))])
def test_a_plan_is_current_if_any_part_of_it_is_done(
    replicas: tuple[tuple[int, ...], tuple[int, ...]],
) -> None:
    now = {TopicPartition("t", number): ids for number, ids in enumerate(replicas)}
    check_plan_is_current(CHANGES, now)


@pytest.mark.parametrize("second", [(1, 2), (3, 1, 2), None])
def test_a_partition_that_is_elsewhere_or_gone_makes_a_plan_stale(
    second: tuple[int, ...] | None,
) -> None:
    now = {TopicPartition("t", 0): (1, 2)}
    if second is not None:
        now[TopicPartition("t", 1)] = second
    with pytest.raises(StalePlan, match="t-1 is elsewhere"):
        check_plan_is_current(CHANGES, now)
