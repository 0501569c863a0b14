"""A cluster that nobody asks for anything: what it holds does not grow with the time.

Source: PUR-3.
"""

from __future__ import annotations

import gc

import pytest

from tests.unit.broker.memory_cluster import MemoryCluster

PARTITIONS = 30
# Dead entries up to a purge interval of each broker, which come and go.
SLACK = 1_000


def object_count() -> int:
    """Count what the collector knows of, without what is only waiting for it."""
    gc.collect()
    return len(gc.get_objects())


@pytest.mark.parametrize("is_one_process", [True, False])
def test_idle_followers_cost_nothing_with_the_time(is_one_process: bool) -> None:
    cluster = MemoryCluster(is_one_process=is_one_process)
    cluster.create_topic(replicas=[(1, 2, 3), (2, 3, 1), (3, 1, 2)] * (PARTITIONS // 3))
    cluster.pass_time(20_000, step_ms=500)
    before = object_count()
    cluster.pass_time(40_000, step_ms=500)
    assert object_count() < before + SLACK
