"""The worst that is true of a partition."""

from __future__ import annotations

import pytest

from engine.client.metadata import NO_BROKER
from engine.watching.partition_trouble import partition_trouble
from tests.unit.watching.samples import row


@pytest.mark.parametrize(
    ("isr", "min_isr", "trouble"),
    [
        ((1, 2, 3), 2, None),
        ((1, 2), 1, "under-replicated"),
        ((1, 2), 2, "at-min-isr"),
        ((1,), 2, "under-min-isr"),
        ((1,), None, "under-replicated"),
        ((1,), 5, "under-min-isr"),
        ((1, 2, 3), 5, None),
    ],
)
def test_a_partition_has_its_worst_trouble(
    isr: tuple[int, ...], min_isr: int | None, trouble: str | None
) -> None:
    assert trouble == partition_trouble(row(0, (1, 2, 3), isr), min_isr)


def test_a_partition_without_a_leader_is_offline() -> None:
    assert "offline" == partition_trouble(row(0, (1, 2), (2,), leader=NO_BROKER), 1)


def test_replicas_that_a_move_brings_are_not_missing() -> None:
    assert partition_trouble(row(0, (1, 2, 3), (1, 2)), 1, adding=(3,)) is None
