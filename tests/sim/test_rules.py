"""The rules that a simulation looks for: each is seen broken where it is broken, and only there."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from engine.controller.context import ControllerContext
from engine.controller.states import PartitionPhase, Replica, ReplicaPhase
from engine.host.memory import MemoryFiles
from engine.log.directory.leader_epoch_checkpoint import EpochStart
from engine.log.local_log import LocalLog
from engine.log.log_messages import LogStartReason
from engine.model import TopicPartition
from engine.replication.following.replica_fetcher import ReplicaFetcher
from engine.replication.isr import FollowerProgress
from engine.replication.partition import Partition
from engine.sim.bit_rot import BitRotRules
from engine.sim.clients import short_lived_producer_kind
from engine.sim.epochs import EpochRules
from engine.sim.histories import History, Loss
from engine.sim.invariants import has_risen
from engine.sim.logs import epochs_rise
from engine.sim.node import SimulatedBroker
from engine.sim.phases import watch_phases
from engine.sim.quiescence import are_even, is_held, lacks_offsets_alone, may_not_fit, readable_end
from engine.sim.sessions import SessionRules
from engine.sim.side_files import filled_files, unreadable_files
from engine.sim.topics import Topics
from engine.sim.watermarks import Lag
from engine.znode.tree import Node
from engine.znode.values import PartitionAssignment, PartitionStateNode, TopicAssignment
from tests.unit.log.writing import fill, log_that_lost_its_end, new_log

T0 = TopicPartition("t", 0)
ID, OTHER_ID = "A" * 22, "B" * 21 + "A"


class Noting:
    """Topics with what they say is broken, and the replicas that are on disks."""

    def __init__(self) -> None:
        self.broken: list[str] = []
        self.files: set[int] = set()
        self.histories: dict[TopicPartition, History] = {}
        self.rots = BitRotRules(self.histories, {})
        self.topics = Topics(
            lambda rule, _text: self.broken.append(rule),
            self.histories,
            has_files=lambda broker_id, _key: broker_id in self.files,
        )

    def write(
        self, *replicas: int, adding: tuple[int, ...] = (), removing: tuple[int, ...] = ()
    ) -> None:
        """Write the assignment of the one partition."""
        row = PartitionAssignment(replicas, adding, removing)
        self.topics.write("t", TopicAssignment(ID, {0: row}))

    def sync(self, *isr: int) -> None:
        """Write the in-sync set."""
        history = self.histories.setdefault(T0, History("t-0"))
        history.state = PartitionStateNode(isr[0], 0, isr, 1)
        self.topics.check(T0, isr)


@pytest.mark.parametrize(
    ("ends", "is_resting", "is_rest"),
    [
        ({(22, 22)}, False, True),
        ({(22, 22), (21, 21)}, False, False),
        ({(22, 22), (22, 20)}, False, False),
        ({(22, 0)}, False, False),
        # The others have given up: one alone is below min.insync.replicas, and commits nothing.
        ({(22, 0)}, True, True),
        ({(22, 0), (21, 0)}, True, False),
    ],
)
def test_replicas_rest_once_all_have_all_that_can_be_committed(
    ends: set[tuple[int, int]], is_resting: bool, is_rest: bool
) -> None:
    assert is_rest is are_even(ends, is_resting)


@pytest.mark.parametrize(
    ("count", "end", "is_left_behind"),
    [(0, 0, True), (1, 0, False), (1, 1, True), (1, 8, True), (1, 9, False)],
)
def test_a_follower_that_lacks_offsets_without_records_has_all_that_is_left(
    count: int, end: int, is_left_behind: bool
) -> None:
    assert is_left_behind is lacks_offsets_alone(log_that_lost_its_end(count, 9), end)


def replica(
    log: LocalLog, broker_id: int = 1, *, leads: bool = False, is_under_min_isr: bool = False
) -> Any:
    """Return a broker with one replica that has a log."""
    partition = SimpleNamespace(
        log=log,
        is_leader=leads,
        is_under_min_isr=is_under_min_isr,
        high_watermark=log.log_end_offset,
    )
    manager = SimpleNamespace(partitions={T0: partition})
    broker = SimpleNamespace(storage=SimpleNamespace(replica_manager=manager))
    return SimpleNamespace(broker_id=broker_id, broker=broker)


@pytest.mark.parametrize(
    ("follower_end", "is_under_min_isr", "may_wait"),
    [(1, True, True), (1, False, False), (9, True, False)],
)
def test_a_producer_waits_for_good_only_where_too_few_can_ever_be_in_sync(
    follower_end: int, is_under_min_isr: bool, may_wait: bool
) -> None:
    noting = Noting()
    noting.write(1, 2)
    noting.sync(1)
    noting.histories[T0].losses.append(Loss(1, 9, "a reason", 0))
    leader = log_that_lost_its_end(1, 9)
    follower = log_that_lost_its_end(1, follower_end)
    nodes = {
        1: replica(leader, leads=True, is_under_min_isr=is_under_min_isr),
        2: replica(follower, 2),
    }
    assert may_wait is is_held(T0, nodes, cast(Any, noting))
    # A consumer gets nothing above the watermark there, though more was committed before.
    nodes[1].broker.storage.replica_manager.partitions[T0].high_watermark = 7
    assert (7 if may_wait else None) == readable_end(T0, nodes, cast(Any, noting))


@pytest.mark.parametrize(("before", "rose"), [(None, True), (3, True), (4, False), (5, False)])
def test_a_watermark_that_a_leader_began_with_was_not_raised_by_it(
    before: int | None, rose: bool
) -> None:
    seen = None if before is None else SimpleNamespace(high_watermark=before)
    assert rose is has_risen(cast(Any, seen), cast(Any, SimpleNamespace(high_watermark=4)))


@pytest.mark.parametrize(
    ("end", "is_compacted", "may_be"),
    [(3, False, False), (4, False, True), (6, False, False), (3, True, True), (0, False, True)],
)
def test_a_follower_may_give_up_only_where_its_leaders_batch_begins_below_its_end(
    end: int, is_compacted: bool, may_be: bool
) -> None:
    log = new_log()
    fill(log, [3, 3])
    log.maybe_increment_log_start_offset(1, 6, LogStartReason.DELETE_RECORDS)
    leader = cast(Partition, SimpleNamespace(log=log))
    assert may_be is may_not_fit(leader, end, is_compacted=is_compacted)


@pytest.mark.parametrize(
    ("epochs", "is_truncating", "cuts", "is_owed"),
    [
        (2, False, 0, True),
        (1, False, 0, False),
        # Its offset was out of its leader's range: the answer was an error, and no watermark.
        (2, True, 0, False),
        (2, False, 1, False),
    ],
)
def test_a_follower_should_know_a_watermark_unless_it_got_an_error(
    epochs: int, is_truncating: bool, cuts: int, is_owed: bool
) -> None:
    fetcher, leader = cast(ReplicaFetcher, object()), cast(Partition, object())
    before = Lag(fetcher, leader, 1, 7, 32, 31, False, 4)
    later = Lag(fetcher, leader, 1, 7, 32 + epochs, 40, is_truncating, 4 + cuts)
    assert later.is_later_than(before)
    assert is_owed is (later.is_answered(before) and not later.is_out_of_range(before))


@pytest.mark.parametrize(
    "changed",
    [
        {"fetcher": object()},
        {"leader": object()},
        {"leader_epoch": 2},
        {"session_id": 8},
        {"session_epoch": 31},
    ],
)
def test_a_follower_of_another_leader_epoch_or_session_is_not_the_same_later(
    changed: dict[str, Any],
) -> None:
    before = Lag(cast(ReplicaFetcher, object()), cast(Partition, object()), 1, 7, 32, 31, False, 4)
    assert before.is_later_than(before)
    assert not before._replace(**changed).is_later_than(before)


@pytest.mark.parametrize(
    ("end", "told_end", "has_lost", "broken"),
    [
        (102, 102, False, []),
        (101, 101, False, ["R11"]),
        # The leader was told of more, by a fetch from before a power cut.
        (100, 102, True, []),
        (100, 102, False, ["R11"]),
        (100, 101, True, ["R11"]),
    ],
)
def test_who_joins_has_what_is_wanted_or_had_it_before_a_power_cut(
    end: int, told_end: int, has_lost: bool, broken: list[str]
) -> None:
    history = History("t-0")
    if has_lost:
        history.record_lost_writes(2, 1)
    replica = _with_replica(SimpleNamespace(log_end_offset=end))
    assert broken == _broken_by_joining(replica, history, told_end)


@pytest.mark.parametrize("is_up", [True, False])
def test_nothing_is_asked_of_who_joins_and_is_gone_or_follows_another(is_up: bool) -> None:
    replica = _with_replica(SimpleNamespace(log_end_offset=0), leader_epoch=7) if is_up else None
    assert [] == _broken_by_joining(replica, History("t-0"), told_end=0)


def _broken_by_joining(
    broker: SimpleNamespace | None, history: History, told_end: int
) -> list[str]:
    """Have broker 2 join the in-sync set of a leader of epoch 6; returns the rules broken."""
    told: list[str] = []
    nodes = {2: SimpleNamespace(broker=broker)}
    rules = EpochRules(
        lambda rule, *_: told.append(rule), cast("dict[int, SimulatedBroker]", nodes), {T0: history}
    )
    leader = SimpleNamespace(
        topic_partition=T0,
        leader_epoch=6,
        broker_id=1,
        log=SimpleNamespace(topic_id=ID),
        high_watermark=102,
        followers={2: FollowerProgress(told_end)},
    )
    rules.check_joining_follower(cast(Partition, leader), 2)
    return told


def _with_replica(log: SimpleNamespace, *, leader_epoch: int = 6) -> SimpleNamespace:
    partitions = {T0: SimpleNamespace(leader_epoch=leader_epoch, log=log)}
    return SimpleNamespace(
        storage=SimpleNamespace(replica_manager=SimpleNamespace(partitions=partitions))
    )


@pytest.fixture
def noting() -> Noting:
    made = Noting()
    made.write(1, 2)
    made.sync(1, 2)
    return made


def test_a_replica_that_has_left_and_come_back_may_not_be_gone(noting: Noting) -> None:
    for comes, goes in ((3, 1), (1, 3)):
        noting.write(comes, 2, goes, adding=(comes,), removing=(goes,))
        noting.sync(comes, 2, goes)
        noting.sync(comes, 2)
        noting.topics.check_removal(T0, goes)
        noting.write(comes, 2)
    assert [] == noting.broken
    noting.sync(2)
    noting.topics.check_removal(T0, 1)
    assert 1 == len(noting.broken)


def test_a_move_whose_target_was_in_sync_breaks_nothing(noting: Noting) -> None:
    noting.write(3, 2, 1, adding=(3,), removing=(1,))
    noting.sync(1, 2, 3)
    noting.sync(2, 3)
    noting.topics.check_removal(T0, 1)
    noting.write(3, 2)
    assert [] == noting.broken


def test_a_move_that_is_cancelled_breaks_nothing(noting: Noting) -> None:
    noting.write(3, 2, 1, adding=(3,), removing=(1,))
    noting.topics.check_removal(T0, 3)
    noting.write(2, 1)
    assert [] == noting.broken


def _ends_early(noting: Noting) -> None:
    noting.sync(2)
    noting.write(3, 2)


def _is_removed_early(noting: Noting) -> None:
    noting.sync(2)
    noting.topics.check_removal(T0, 1)


def _is_removed_in_sync(noting: Noting) -> None:
    noting.sync(1, 2, 3)
    noting.topics.check_removal(T0, 1)


def _ends_elsewhere(noting: Noting) -> None:
    noting.sync(1, 2, 3)
    noting.write(1, 2, 3)


def _forgets_where_it_began(noting: Noting) -> None:
    noting.write(3, 2, adding=(3,))


def _leaves_somebody_in_sync(noting: Noting) -> None:
    noting.sync(1, 2, 3)
    noting.write(3, 2)


@pytest.mark.parametrize(
    "wrong",
    [
        _ends_early,
        _is_removed_early,
        _is_removed_in_sync,
        _ends_elsewhere,
        _forgets_where_it_began,
        _leaves_somebody_in_sync,
    ],
)
def test_a_move_that_goes_wrong_is_seen(noting: Noting, wrong: Callable[[Noting], None]) -> None:
    noting.write(3, 2, 1, adding=(3,), removing=(1,))
    assert [] == noting.broken
    wrong(noting)
    assert {"C6"} == set(noting.broken)


def test_replicas_that_change_without_a_move_are_seen(noting: Noting) -> None:
    noting.write(1, 2, 3)
    assert ["C6"] == noting.broken


def test_replicas_may_change_their_order(noting: Noting) -> None:
    noting.write(2, 1)
    assert [] == noting.broken


def test_a_topic_that_is_deleted_everywhere_breaks_nothing(noting: Noting) -> None:
    noting.topics.doom("t")
    assert noting.topics.is_doomed("t")
    assert noting.histories[T0].excuse is not None
    noting.topics.remove("t")
    noting.topics.pardon("t")
    assert [] == noting.broken + noting.topics.doomed()
    assert {} == noting.histories


def test_a_topic_that_goes_before_its_replicas_is_seen(noting: Noting) -> None:
    noting.files = {2}
    noting.topics.doom("t")
    noting.topics.remove("t")
    assert ["C8"] == noting.broken


def test_a_topic_that_goes_unasked_is_seen(noting: Noting) -> None:
    noting.topics.remove("t")
    assert ["C8"] == noting.broken


def test_a_topic_that_is_deleted_during_a_move_is_noticed(noting: Noting) -> None:
    noting.write(3, 2, 1, adding=(3,), removing=(1,))
    noting.topics.doom("t")
    noting.topics.remove("t")
    assert ["C8"] == noting.broken


@pytest.mark.parametrize(("topic_id", "broken"), [(ID, ["C8"]), (OTHER_ID, []), (None, ["C8"])])
def test_the_id_of_a_deleted_topic_never_returns(
    noting: Noting, topic_id: str | None, broken: list[str]
) -> None:
    noting.topics.doom("t")
    noting.topics.remove("t")
    noting.topics.pardon("t")
    noting.topics.write("t", TopicAssignment(topic_id, {0: PartitionAssignment((1,))}))
    assert broken == noting.broken


def test_a_topic_keeps_its_id(noting: Noting) -> None:
    noting.topics.write("t", TopicAssignment(OTHER_ID, {0: PartitionAssignment((1, 2))}))
    assert ["C8"] == noting.broken


def test_partitions_go_only_when_they_came_to_a_topic_that_goes(noting: Noting) -> None:
    rows = {0: PartitionAssignment((1, 2)), 1: PartitionAssignment((1, 2))}
    noting.topics.doom("t")
    noting.topics.write("t", TopicAssignment(ID, rows))
    noting.write(1, 2)
    assert [T0] == list(noting.topics.rows)
    assert [] == noting.broken
    noting.sync(1, 2)
    noting.topics.write("t", TopicAssignment(ID, {}))
    assert ["C8"] == noting.broken


def test_a_partition_may_go_that_a_topic_of_the_same_name_had_before_a_set_back(
    noting: Noting,
) -> None:
    noting.histories[T0] = History("t-0")
    noting.topics.doom("t")
    noting.write(1, 2)
    noting.topics.write("t", TopicAssignment(ID, {}))
    assert [] == noting.broken


def _ephemeral(owner: int) -> Node:
    return Node(b"", owner, owner, 0, 0, 0, 0, 0, owner)


def test_ephemeral_nodes_go_with_their_session() -> None:
    broken: list[str] = []
    sessions = SessionRules(lambda rule, _text: broken.append(rule))
    sessions.on_transaction({}, {7: 6000, 8: 6000})
    sessions.on_transaction({"/a": _ephemeral(7), "/b": _ephemeral(8)}, {})
    sessions.on_transaction({"/a": None}, {7: None})
    assert [] == broken
    sessions.on_transaction({}, {8: None})
    assert ["Z2"] == broken


def test_a_session_that_is_over_makes_no_node() -> None:
    broken: list[str] = []
    sessions = SessionRules(lambda rule, _text: broken.append(rule))
    sessions.on_transaction({"/a": _ephemeral(7)}, {})
    assert ["Z2"] == broken


def test_phases_that_do_not_follow_each_other_are_seen() -> None:
    broken: list[str] = []
    context, replica = ControllerContext(), Replica(T0, 1)
    watch_phases(context, lambda rule, _text: broken.append(rule))
    for phase in (ReplicaPhase.NEW, ReplicaPhase.ONLINE, ReplicaPhase.OFFLINE):
        context.replica_phases[replica] = phase
    context.partition_phases[T0] = PartitionPhase.ONLINE
    assert [] == broken
    context.replica_phases[replica] = ReplicaPhase.DELETION_SUCCESSFUL
    context.partition_phases[T0] = PartitionPhase.NEW
    assert ["C3", "C3"] == broken
    # The next controller of this broker begins again.
    context.reset()
    context.replica_phases[replica] = ReplicaPhase.DELETION_INELIGIBLE
    context.replica_phases[Replica(T0, 2)] = ReplicaPhase.OFFLINE
    assert ["C3"] * 3 == broken


@pytest.mark.parametrize(
    ("epochs", "rise"),
    [
        ((), True),
        (((0, 0), (3, 5)), True),
        (((0, 0), (3, 10)), True),
        (((0, 0), (3, 11)), False),
        (((3, 0), (3, 5)), False),
        (((0, 5), (3, 5)), False),
        (((4, 0), (3, 5)), False),
    ],
)
def test_epochs_rise_up_to_the_end_of_the_log(
    epochs: tuple[tuple[int, int], ...], rise: bool
) -> None:
    assert rise == epochs_rise([EpochStart(*each) for each in epochs], 10)


@pytest.mark.parametrize("number", range(6))
def test_what_a_producer_sends_again_overtakes_nothing_unless_sequences_hold_it(
    number: int,
) -> None:
    kind = short_lived_producer_kind(number)
    assert kind.window == 1 or kind.is_idempotent
    assert {1, 3} <= {short_lived_producer_kind(each).window for each in range(6)}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("meta.properties", b""),
        ("replication-offset-checkpoint", b""),
        ("recovery-point-offset-checkpoint", b"0\n2\nt 0 4\n"),
        ("t-0/leader-epoch-checkpoint", b""),
        ("t-0/partition.metadata", b"version: 0"),
    ],
)
def test_a_file_that_is_neither_old_nor_new_is_found(name: str, content: bytes) -> None:
    files = MemoryFiles()
    files.make_dir("/data/t-0")
    files.replace_file("/data/t-0/leader-epoch-checkpoint", b"0\n0\n")
    files.replace_file("/data/t-0/00000000000000000000.index", b"")
    filled = frozenset(("/data/replication-offset-checkpoint", "/data/t-0/leader-epoch-checkpoint"))
    assert [] == unreadable_files(files, "/data", filled)
    files.replace_file(f"/data/{name}", content)
    assert [f"/data/{name}"] == unreadable_files(files, "/data", filled)


def test_a_checkpoint_is_empty_until_it_is_replaced_and_that_is_durable() -> None:
    files = MemoryFiles()
    files.make_dir("/data")
    path = "/data/replication-offset-checkpoint"
    files.open(path, write=True, create=True).close()
    files.sync_all()
    assert frozenset() == filled_files(files, ["/data", "/gone"])
    assert [] == unreadable_files(files, "/data", frozenset())
    file = files.open(path, write=True)
    file.append([b"0\n0\n"])
    file.close()
    assert frozenset() == filled_files(files, ["/data"])
    files.sync_all()
    assert {path} == filled_files(files, ["/data"])
