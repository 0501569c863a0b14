"""A store that is set back: what differed then may be lost, and nothing else."""

from __future__ import annotations

import pytest

from engine.model import TopicPartition
from engine.sim.fault_kinds import FaultKind
from engine.sim.histories import History
from engine.sim.plan import Fault, Plan, plan_of
from engine.sim.simulation import run_plan
from engine.sim.store_rollback import (
    AGE_MS_MAX,
    Snapshots,
    grown_topics,
    is_log_of,
    lost_partitions,
    put_back,
    read_topics,
)
from engine.znode.journal import Stored
from engine.znode.paths import (
    CONTROLLER_EPOCH,
    PRODUCER_ID_BLOCK,
    delete_topic_path,
    partition_state_path,
    topic_path,
)
from engine.znode.tree import Node
from engine.znode.values import (
    PartitionAssignment,
    PartitionStateNode,
    TopicAssignment,
    decode_partition_state,
    encode_partition_state,
    encode_topic,
)
from tests.sim.mutants import Fault as Planted
from tests.sim.set_back_mutants import (
    equal_partitions_lose_their_sets,
    leader_epochs_are_set_back,
    nodes_outlive_their_sessions,
    strays_are_not_set_aside,
)
from tests.sim.test_operator import quiet_plan, traced

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
#: Which faults' numbers set the store back by how much.
_2_S, _5_S, _10_S = 1, 2, 3


def _node(data: bytes, owner: int = 0) -> Node:
    return Node(data, 1, 1, 1, 0, 0, 4, 0, owner)


def _stored(
    *states: PartitionStateNode, topic_id: str = "A", zxid: int = 7, doomed: bool = False
) -> Stored:
    """Return a store with the topic t, whose partitions have these states."""
    rows = {index: PartitionAssignment((1, 2, 3)) for index in range(len(states))}
    nodes = {topic_path("t"): _node(encode_topic(TopicAssignment(topic_id, rows)))}
    for index, state in enumerate(states):
        path = partition_state_path(TopicPartition("t", index))
        nodes[path] = _node(encode_partition_state(state))
    nodes[CONTROLLER_EPOCH] = _node(b"3")
    nodes[PRODUCER_ID_BLOCK] = _node(b"ids of %d" % zxid)
    if doomed:
        nodes[delete_topic_path("t")] = _node(b"")
    return Stored(list(nodes.items()), {}, zxid)


def _state(leader: int, epoch: int, *isr: int, controller_epoch: int = 3) -> PartitionStateNode:
    return PartitionStateNode(leader, epoch, isr, controller_epoch)


# What is kept, and what is put back


def test_the_last_snapshot_at_or_before_a_time_is_put_back() -> None:
    snapshots = Snapshots()
    assert snapshots.as_of(5) is None
    for at_ms in (10, 20, 30):
        snapshots.keep(at_ms, Stored([], {}, at_ms))
    found = [snapshots.as_of(at_ms) for at_ms in (5, 10, 19, 20, 99)]
    assert [10, 10, 10, 20, 30] == [stored.zxid for stored in found if stored is not None]


def test_snapshots_that_nobody_can_ask_for_are_forgotten() -> None:
    snapshots = Snapshots()
    for at_ms in (0, 1, AGE_MS_MAX + 1):
        snapshots.keep(at_ms, Stored([], {}, at_ms))
    found = snapshots.as_of(0)
    assert found is not None
    assert found.zxid == 1


def test_epochs_that_logs_have_already_are_not_put_back() -> None:
    before = _stored(_state(1, 4, 1, 2), _state(2, 6, 2, 3))
    now = _stored(_state(2, 9, 2), _state(2, 6, 2), zxid=20)
    stored = put_back(before, now)
    nodes = dict(stored.nodes)
    states = [
        decode_partition_state(nodes[path].data, path)
        for path in map(partition_state_path, (T0, T1))
    ]
    assert [_state(1, 10, 1, 2), _state(2, 6, 2, 3)] == states
    assert stored.zxid == 20
    assert nodes[PRODUCER_ID_BLOCK].data == b"ids of 20"


def test_the_epochs_of_another_topic_of_the_name_are_put_back_as_they_were() -> None:
    stored = put_back(_stored(_state(1, 4, 1)), _stored(_state(2, 9, 2), topic_id="B"))
    assert read_topics(dict(stored.nodes)).states == {T0: _state(1, 4, 1)}


@pytest.mark.parametrize(
    ("now", "is_same", "is_equal"),
    [
        (_stored(_state(1, 4, 1, 2), _state(1, 0, 1)), True, True),
        (_stored(_state(1, 4, 1, 2, controller_epoch=5), _state(1, 0, 1)), True, True),
        (_stored(_state(1, 4, 1), _state(1, 0, 1)), True, False),
        (_stored(_state(1, 5, 1, 2), _state(1, 0, 1)), True, False),
        (_stored(_state(1, 4, 1, 2), _state(1, 0, 1), topic_id="B"), False, False),
        (_stored(_state(1, 4, 1, 2), _state(1, 0, 1), doomed=True), False, False),
        (_stored(), False, False),
    ],
)
def test_a_partition_differs_in_its_topic_or_in_who_leads_it(
    now: Stored, is_same: bool, is_equal: bool
) -> None:
    topics = read_topics(dict(_stored(_state(1, 4, 1, 2), _state(1, 0, 1)).nodes))
    topics_now = read_topics(dict(now.nodes))
    assert topics.is_same(T0, topics_now) == is_same
    assert topics.is_equal(T0, topics_now) == is_equal


def test_partitions_that_a_topic_has_no_more_are_added_again_without_their_logs() -> None:
    topics = read_topics(dict(_stored(_state(1, 0, 1)).nodes))
    topics_now = read_topics(dict(_stored(_state(1, 0, 1), _state(2, 0, 2)).nodes))
    assert [T1] == lost_partitions(topics, topics_now)
    assert {"t": 2} == grown_topics(topics, topics_now)


def test_brokers_see_to_logs_of_other_topics_themselves() -> None:
    topics = read_topics(dict(_stored(_state(1, 0, 1)).nodes))
    others = read_topics(dict(_stored(_state(1, 0, 1), _state(1, 0, 1), topic_id="B").nodes))
    assert [] == lost_partitions(topics, others)
    assert {} == grown_topics(topics, others)


def test_logs_of_a_partition_are_known_by_their_folders() -> None:
    assert is_log_of("t-1", T1)
    assert is_log_of("t-1.0f-delete", T1)
    assert not is_log_of("t-11", T1)


# What is excused


def test_a_member_that_is_put_back_is_excused_for_what_it_lacks_alone() -> None:
    history = History("t-0")
    history.state, history.committed_end = _state(1, 4, 1, 2, 3), 50
    history.roll_back({3: 20})
    history.judge_unseen(3)
    assert history.excuse is None
    assert history.lossy[3].whole_end == 20
    history.state = _state(3, 5, 1, 3)
    history.judge_unseen(3)
    assert "the leader 3 lacks records, the store was set back" == history.excuse


def test_a_loss_is_awaited_where_all_who_are_put_back_lack_records() -> None:
    history = History("t-0")
    history.state, history.committed_end = _state(1, 4, 1, 2), 50
    history.roll_back({1: 20, 2: 30})
    assert "all of ISR [1, 2] lack records, the store was set back" == history.excuse


def test_a_power_cut_does_not_hide_from_where_on_a_member_lacked_records() -> None:
    history = History("t-0")
    history.state, history.committed_end = _state(1, 4, 1, 2), 50
    history.roll_back({2: 20})
    history.record_lost_writes(2, 3, 60)
    assert (60, 20) == (history.lossy[2].end_before, history.lossy[2].whole_end)


# Whole clusters


def set_back(at_ms: int, age: int = _5_S) -> Fault:
    """Return a store that is set back at a time."""
    return Fault(at_ms, FaultKind.STORE_SET_BACK, "controller", 1_000, age)


def lagging_plan(*others: Fault) -> Plan:
    """Return a plan in which broker 3 is cut off, and in sync again as the store is set back.

    The others are down then, and come back when 3 has led for a while.
    """
    faults = [
        Fault(1_500, FaultKind.ISOLATE, "3", 7_000, 1),
        Fault(7_500, FaultKind.KILL, "1", 12_000),
        Fault(7_500, FaultKind.KILL, "2", 12_000),
        set_back(8_000, _10_S),
        *others,
    ]
    return quiet_plan(*sorted(faults, key=lambda fault: fault.at_ms))


def test_where_nothing_differs_nothing_is_lost() -> None:
    result = traced(quiet_plan(*(set_back(at_ms, _2_S) for at_ms in (6_000, 12_000))))
    assert result.excused_count == 0
    assert 2 == sum("heal" in line and "store-set-back" in line for line in result.lines)
    assert not any("is set back to" in line for line in result.lines)


def test_one_that_lagged_and_is_in_sync_again_leads_and_loses_what_it_lacks() -> None:
    result = traced(lagging_plan())
    lost = [line for line in result.lines if "LOST" in line]
    assert lost
    assert all("lacks records, the store was set back" in line for line in lost)


def test_one_that_lagged_gets_all_from_a_leader_that_was_not_away() -> None:
    plan = lagging_plan()
    plan = plan._replace(faults=tuple(f for f in plan.faults if f.kind is not FaultKind.KILL))
    result = traced(plan)
    assert any("is set back to" in line for line in result.lines)
    assert result.excused_count == 0


def test_a_topic_that_is_gone_leaves_nothing_to_the_next_of_its_name() -> None:
    creation = Fault(6_000, FaultKind.CREATE_TOPIC, "1", 0, 5)
    lines = traced(quiet_plan(creation, set_back(9_000), creation._replace(at_ms=17_000))).lines
    assert any(" is set back to None" in line for line in lines)
    assert 2 == sum("CreateTopics: done" in line for line in lines[_load(lines) :])


def test_a_topic_that_was_deleted_is_there_again() -> None:
    creation = Fault(2_000, FaultKind.CREATE_TOPIC, "1", 0, 5)
    deletion = Fault(6_000, FaultKind.DELETE_TOPIC, "1", 0, 5)
    lines = traced(quiet_plan(creation, deletion, set_back(9_000))).lines
    assert any(" x" in line and " is set back to PartitionState" in line for line in lines)


def test_partitions_that_a_topic_lost_are_added_again() -> None:
    growth = Fault(6_000, FaultKind.GROW_TOPIC, "1", 0, 5)
    lines = traced(quiet_plan(growth, set_back(9_000))).lines
    assert any("t0-3 is set back to None" in line for line in lines)
    assert 2 == sum("CreatePartitions: done" in line for line in lines)


def replaced_plan() -> Plan:
    """Return a plan of many elections and a topic that is gone and created again."""
    creation = Fault(6_000, FaultKind.CREATE_TOPIC, "1", 0, 5)
    elections = [Fault(2_000 + 600 * n, FaultKind.HAND_OVER, "1", 0, n) for n in range(11)]
    return quiet_plan(*elections, creation, set_back(9_000), creation._replace(at_ms=17_000))


@pytest.mark.parametrize(
    ("plant", "plan", "rules"),
    [
        (nodes_outlive_their_sessions, replaced_plan(), ("Z2",)),
        # Two leaders of one epoch, or followers that take no later epochs and ask without end: as
        # the elections fall. With this seed it is the former, which ends the run soon.
        (leader_epochs_are_set_back, replaced_plan()._replace(seed=31), ("R5", "LIVE", "HW-10")),
        (strays_are_not_set_aside, replaced_plan(), ("LIVE",)),
        (equal_partitions_lose_their_sets, quiet_plan(set_back(9_000)), ("R5",)),
    ],
)
def test_what_is_put_back_wrongly_is_noticed(
    monkeypatch: pytest.MonkeyPatch, plant: Planted, plan: Plan, rules: tuple[str, ...]
) -> None:
    assert run_plan(plan).violation is None
    plant(monkeypatch)
    violation = run_plan(plan).violation
    assert violation is not None
    assert violation.rule in rules


def test_the_store_is_set_back_in_some_seeds_that_neither_compact_nor_rot() -> None:
    plans = [plan_of(seed) for seed in range(400)]
    kinds = [{fault.kind for fault in plan.faults} for plan in plans]
    found = [at for at, of_plan in enumerate(kinds) if FaultKind.STORE_SET_BACK in of_plan]
    assert 8 <= len(found) <= 32
    assert not any(plans[at].is_compacted or FaultKind.BIT_ROT in kinds[at] for at in found)


def _load(lines: list[str]) -> int:
    return next(at for at, line in enumerate(lines) if "the cluster stands" in line)
