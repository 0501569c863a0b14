"""Groups of writes: together while they can be, each for itself when one is refused."""

from __future__ import annotations

import pytest

from engine.controller.grouped_writes import write_groups
from engine.controller.guarded_znodes import ControllerMoved, GuardedZnodes
from engine.host.coroutine import drive
from engine.host.turns import LoopTurns
from engine.limits import (
    CONTROLLER_MULTI_BYTES_MAX,
    CONTROLLER_MULTI_OPERATIONS_MAX,
    CONTROLLER_OPERATIONS_PER_SHARE,
)
from engine.znode.errors import NodeExists, NoNode
from engine.znode.model import Create, Delete
from tests.unit.controller.cluster import Cluster, now


def test_groups_go_in_one_transaction_up_to_the_bound() -> None:
    cluster = Cluster(0)
    groups = [[Create(f"/n{index}"), Create(f"/n{index}/c")] for index in range(501)]
    cluster.store.take()
    results = now(write_groups(cluster.admin.multi, groups))
    assert [["/n0", "/n0/c"], ["/n1", "/n1/c"]] == results[:2]
    assert [CONTROLLER_MULTI_OPERATIONS_MAX, 2] == [len(each) for each in cluster.store.take()]


def test_a_transaction_is_bounded_in_bytes_as_a_zookeeper_is() -> None:
    cluster = Cluster(0)
    # A topic of 300 partitions, three hundred times.
    groups = [[Create(f"/n{index}", bytes(9_000))] for index in range(300)]
    cluster.store.take()
    results = now(write_groups(cluster.admin.multi, groups))
    assert [[f"/n{index}"] for index in range(300)] == results
    sizes = [len(transaction) for transaction in cluster.store.take()]
    assert 300 == sum(sizes)
    per_transaction = CONTROLLER_MULTI_BYTES_MAX // (9_000 + 64 + len("/n100"))
    assert per_transaction == sizes[1]
    assert 3 == len(sizes)


def test_a_group_above_the_bound_goes_alone() -> None:
    cluster = Cluster(0)
    large = [Create("/l", bytes(CONTROLLER_MULTI_BYTES_MAX)), Create("/l/c")]
    cluster.store.take()
    now(write_groups(cluster.admin.multi, [[Create("/a")], large, [Create("/b")]]))
    assert [1, 2, 1] == [len(each) for each in cluster.store.take()]


def test_a_refused_group_is_refused_alone_and_undone_whole() -> None:
    cluster = Cluster(0)
    now(cluster.admin.create("/b"))
    groups = [[Create("/a")], [Create("/x"), Create("/b")], [Create("/c")]]
    first, second, third = now(write_groups(cluster.admin.multi, groups))
    assert (["/a"], ["/c"]) == (first, third)
    assert isinstance(second, NodeExists)
    assert not cluster.exists("/x")
    (alone,) = now(write_groups(cluster.admin.multi, [[Create("/b")]]))
    assert isinstance(alone, NodeExists)
    assert [] == now(write_groups(cluster.admin.multi, []))


def test_nothing_is_written_for_a_controller_that_was_deposed() -> None:
    cluster = Cluster(1)
    znodes = GuardedZnodes(cluster.admin, LoopTurns(cluster.timers, cluster.clock))
    with pytest.raises(ControllerMoved):
        now(znodes.write_groups([[Create("/a")], [Create("/b")]]))
    znodes.epoch_version = 1
    now(znodes.create_missing(["/a", "/brokers"]))
    now(znodes.delete_all(["/a", "/never"]))
    assert not cluster.exists("/a")
    with pytest.raises(NoNode):
        now(znodes.create_missing(["/no/parent"]))
    with pytest.raises(NoNode):
        now(znodes.write([Delete("/never")]))
    assert [] == now(znodes.list_tree("/never"))


def test_each_large_transaction_has_a_turn_of_its_own() -> None:
    cluster = Cluster(1)
    znodes = GuardedZnodes(cluster.admin, LoopTurns(cluster.timers, cluster.clock))
    znodes.epoch_version = 1
    cluster.store.take()
    small = [f"/s{index}" for index in range(CONTROLLER_OPERATIONS_PER_SHARE)]
    now(znodes.create_missing(small))
    large = [f"/n{index}" for index in range(2 * CONTROLLER_MULTI_OPERATIONS_MAX)]
    done = drive(znodes.create_missing(large))
    turns: list[tuple[bool, bool]] = []

    def look() -> None:
        turns.append((cluster.exists("/n0"), cluster.exists(large[-1])))
        if not done.is_kept:
            cluster.timers.call_soon(look)

    look()
    cluster.settle()
    assert [(False, False), (True, False), (True, True)] == list(dict.fromkeys(turns))
    assert done.is_kept
