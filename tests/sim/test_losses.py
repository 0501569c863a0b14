"""Where records may be lost: which offsets, and until when; everything else is asked for."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from engine.errors import StorageError
from engine.host.memory import MachineStopped, MemoryFiles
from engine.log.log_config import LogConfig
from engine.model import TopicPartition
from engine.records.batch_header import LEADER_EPOCH_AT, set_leader_epoch
from engine.records.builder import BatchBuilder, BatchSettings
from engine.sim import invariants as invariants_module
from engine.sim import losses as losses_module
from engine.sim.bit_rot import BitRot, BitRotRules
from engine.sim.clients import ProducerKind, SentBatch
from engine.sim.histories import Awaited, Fork, History, Loss
from engine.sim.invariants import Invariants
from engine.sim.ledger import Ledger
from engine.sim.losses import LossRules, ReplicaEnd, Rules
from engine.sim.records import batches
from engine.sim.topics import Topics
from engine.znode.values import PartitionStateNode
from tests.sim.test_deletions import COUNT, log_of
from tests.unit.log.writing import open_log

T0 = TopicPartition("t", 0)
EPOCH = 4


def batch_of(base_offset: int, count: int, *, number: int | None = None) -> bytes:
    """Return a batch of so many records of a producer, from a number on."""
    builder = BatchBuilder(BatchSettings(base_offset=base_offset))
    first = base_offset if number is None else number
    for index in range(count):
        builder.append(0, None, b"p:%d" % (first + index))
    return bytes(builder.build())


class _Replica(SimpleNamespace):
    __hash__ = object.__hash__


class _Log(SimpleNamespace):
    """A log of these batches."""

    def __init__(self, content: bytes) -> None:
        super().__init__(log_start_offset=0)
        self.content = content
        self.log_end_offset = list(batches(content))[-1].last_offset + 1

    def read(self, offset: int, *_: object) -> Any:
        left = b"".join(bytes(b.raw) for b in batches(self.content) if b.base_offset >= offset)
        return SimpleNamespace(read=lambda: left, release=lambda: None)


class Cluster:
    """One partition that broker 1 leads; its log has the offsets that a test says."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.history = History("t-0")
        for batch in batches(log_of(*range(COUNT))):
            self.history.commit(batch, 0)
        self.history.state = PartitionStateNode(1, EPOCH, (1, 2), 7)
        self.broken: list[str] = []
        self.lost: list[tuple[int, int]] = []
        self.ends = {1: COUNT, 2: COUNT + 2}
        self._content = b""
        patch.setattr(losses_module, "content_batches", lambda *_: list(batches(self._content)))
        self._nodes = {broker_id: cast(Any, SimpleNamespace(broker=None)) for broker_id in (1, 2)}
        self.rots = BitRotRules({}, {})
        self.rules = LossRules(
            Rules(2, False, False),
            {T0: self.history},
            cast(Topics, SimpleNamespace(replicas=lambda _: (1, 2))),
            self._nodes,
            self.rots,
            broke=lambda rule, *_: self.broken.append(rule),
            end_of=lambda broker_id, _: ReplicaEnd(self.ends[broker_id], 3),
        )
        self.rules.on_loss = lambda _, loss: self.lost.append((loss.first, loss.end))

    def controllers(self, context: SimpleNamespace) -> None:
        """Let broker 2 be the controller that knows this."""
        self._nodes[2].broker = SimpleNamespace(controller=SimpleNamespace(context=context))

    def replica(self, *offsets: int) -> Any:
        """Return the replica of broker 1 with a log of these offsets."""
        self._content = log_of(*offsets)
        end = offsets[-1] + 1 if offsets else 0
        log = SimpleNamespace(log_start_offset=min(offsets, default=0), log_end_offset=end)
        return _Replica(broker_id=1, topic_partition=T0, leader_epoch=EPOCH, log=log)

    def set_last_epoch(self, epoch: int) -> None:
        """Have the last batch of the log written in an epoch."""
        content = bytearray(self._content)
        *_, last = batches(self._content)
        set_leader_epoch(content, last.position + LEADER_EPOCH_AT, epoch)
        self._content = bytes(content)

    def lead(self, *offsets: int) -> str:
        """Return what is wrong with a leader that has these offsets."""
        return self.rules.on_leader_epoch(self.history, self.replica(*offsets), 0)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return Cluster(monkeypatch)


def test_a_leader_that_lacks_something_without_an_excuse_is_seen(cluster: Cluster) -> None:
    assert "" == cluster.lead(*range(COUNT))
    assert cluster.lead(*range(COUNT - 1)).startswith("lacks")


def test_an_excuse_ends_as_the_leader_begins_though_it_lost_nothing(cluster: Cluster) -> None:
    cluster.history.awaited = Awaited("a reason")
    assert cluster.history.excuse
    assert "" == cluster.lead(*range(COUNT))
    assert (None, []) == (cluster.history.excuse, cluster.history.losses)
    assert cluster.lead(*range(COUNT - 1))


@pytest.mark.parametrize(("is_unclean", "lost_epoch"), [(True, EPOCH), (False, -1)])
def test_a_leader_of_before_an_unclean_election_commits_what_nobody_keeps(
    cluster: Cluster, is_unclean: bool, lost_epoch: int
) -> None:
    # It is alone in its set, and has not heard of the new leader, which lacks nothing by then.
    cluster.history.awaited = Awaited("a reason", is_unclean=is_unclean)
    assert "" == cluster.lead(*range(COUNT))
    assert (lost_epoch, []) == (cluster.history.lost_epoch, cluster.history.losses)


@pytest.mark.parametrize(("offsets", "lost"), [((7, 8), []), ((7, COUNT), [(COUNT, COUNT + 1)])])
def test_a_leader_of_before_a_loss_loses_nothing_that_is_committed_anyway(
    cluster: Cluster, offsets: tuple[int, ...], lost: list[tuple[int, int]]
) -> None:
    end = offsets[-1] + 1
    cluster.rules.record_outdated_commits(cluster.history, cluster.replica(*offsets), 7, end, 0)
    assert lost == cluster.lost


def test_a_loss_names_its_offsets_and_all_others_are_requested(cluster: Cluster) -> None:
    cluster.history.awaited = Awaited("a reason")
    assert "" == cluster.lead(*range(7))
    assert [(7, COUNT)] == cluster.lost
    assert 7 == cluster.history.committed_end
    assert "" == cluster.lead(*range(7))
    assert cluster.lead(*range(6))


def test_a_power_cut_excuses_nothing_that_the_disk_has_kept(cluster: Cluster) -> None:
    cluster.rules.record_lost_writes(1)
    cluster.rules.on_replica_change(cluster.history, cluster.replica(*range(7)), 0)
    cluster.history.awaited = Awaited("a reason")
    assert cluster.lead(0, 1, 2, 4, 5, 6).startswith("lacks")


@pytest.mark.parametrize(
    ("is_unclean", "offsets", "is_excused"),
    [(True, range(9), True), (True, (*range(5), *range(7, 9)), False), (False, range(9), False)],
)
def test_who_was_not_in_sync_may_have_kept_other_records_and_no_hole(
    cluster: Cluster, is_unclean: bool, offsets: Iterable[int], is_excused: bool
) -> None:
    cluster.history.lose(Loss(5, COUNT, "a reason", 0), leader_epoch=2)
    for batch in batches(log_of(*range(5, COUNT), key=b"other")):
        cluster.history.commit(batch, 0)
    cluster.rules.record_lost_writes(1)
    cluster.rules.on_replica_change(cluster.history, cluster.replica(*range(9)), 0)
    cluster.history.awaited = Awaited("a reason", is_unclean=is_unclean)
    assert is_excused is (cluster.lead(*offsets) == "")
    assert is_excused is (cluster.lost == [(5, COUNT)])


@pytest.mark.parametrize(
    ("lossy", "damaged", "ending", "may_end"),
    [
        ((), None, {1, 2}, True),
        ((1,), None, {1}, True),
        # Broker 2 alone has all.
        ((1,), None, {2}, False),
        ((1,), None, {1, 2}, False),
        # Nothing is left to lose.
        ((1, 2), None, {1, 2}, True),
        # The damaged batch is removed, and a controller sees it, but where all end at once.
        ((), 2, {2}, True),
        ((), 2, {1, 2}, False),
    ],
)
def test_processes_end_only_while_others_in_sync_have_all(
    cluster: Cluster, lossy: tuple[int, ...], damaged: int | None, ending: set[int], may_end: bool
) -> None:
    for broker_id in lossy:
        cluster.history.record_lost_writes(broker_id, 7)
    cluster.rots.is_damaged = lambda i, _: i == damaged  # type: ignore[method-assign]
    assert cluster.rules.may_end(frozenset(ending)) is may_end


@pytest.mark.parametrize(
    ("lossy", "damaged", "may_change"),
    [((), None, True), ((1,), None, False), ((1, 2), None, True), ((), 2, True)],
)
def test_a_controller_changes_only_while_no_member_lost_what_others_have(
    cluster: Cluster, lossy: tuple[int, ...], damaged: int | None, may_change: bool
) -> None:
    for broker_id in lossy:
        cluster.history.record_lost_writes(broker_id, 7)
    cluster.rots.is_damaged = lambda i, _: i == damaged  # type: ignore[method-assign]
    assert cluster.rules.may_change_controller() is may_change


def test_an_unclean_election_of_who_lost_writes_unseen_is_still_one() -> None:
    history = History("t-0")
    history.state = PartitionStateNode(1, EPOCH, (1,), 7)
    history.expect_unclean_loss()
    history.record_lost_writes(1, 6)
    history.judge_unseen(7)
    assert history.awaited is not None
    assert (True, True) == (history.awaited.is_rewriting, history.awaited.is_unclean)


@pytest.mark.parametrize(
    ("isr", "reason"),
    [
        ((1, 2), "the leader 1 lost writes unseen by its controller"),
        ((1,), "all of ISR [1] lost unsynced writes"),
    ],
)
def test_a_loss_that_no_election_can_help_against_is_named_so_though_one_leads(
    isr: tuple[int, ...], reason: str
) -> None:
    history = History("t-0")
    history.state = PartitionStateNode(1, EPOCH, isr, 7)
    history.record_lost_writes(1, 6)
    history.judge_unseen(7)
    assert reason == history.excuse
    assert history.awaited is not None
    assert history.awaited.is_rewriting


def test_commits_of_before_an_unclean_election_are_kept_by_nobody(cluster: Cluster) -> None:
    cluster.history.expect_unclean_loss()
    assert cluster.lead(*range(COUNT)) == ""
    assert [] == cluster.lost
    assert EPOCH == cluster.history.lost_epoch


def test_a_power_cut_takes_nothing_that_was_synced(cluster: Cluster) -> None:
    cluster.rules.record_lost_writes(1)
    cluster.rules.on_replica_change(cluster.history, cluster.replica(0, 1), 0)
    assert ["L2"] == cluster.broken


@pytest.mark.parametrize(("recovery_point", "synced_end"), [(6, 6), (8, 7), (9, 7), (10, 10)])
def test_of_a_log_that_was_truncated_in_a_batch_the_disk_has_what_is_left_before_it(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, recovery_point: int, synced_end: int
) -> None:
    replica = cluster.replica(*range(7))
    replica.log = SimpleNamespace(log_end_offset=9, recovery_point=recovery_point)
    monkeypatch.setattr(losses_module, "file_end", lambda _: 10)
    assert recovery_point == cluster.rules.synced_end(replica)
    cluster.rules.log_truncated(replica)
    assert synced_end == cluster.rules.synced_end(replica)


@pytest.mark.parametrize(("hidden_at", "forks"), [(7, [Fork(7, 9)]), (6, []), (9, []), (None, [])])
def test_a_batch_whose_last_offset_was_damaged_may_be_truncated_with_its_committed_records(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, hidden_at: int | None, forks: list[Fork]
) -> None:
    # The batch at 7 claimed to reach beyond 9, to which the leader had the log truncated.
    replica = cluster.replica(*range(7))
    replica.log = SimpleNamespace(log_end_offset=9, recovery_point=7)
    rots = [] if hidden_at is None else [BitRot(1, T0, hidden_at, is_hiding=True)]
    other_broker = BitRot(2, T0, 7, is_hiding=True)
    monkeypatch.setattr(cluster.rots, "_readable", lambda: [*rots, other_broker])
    cluster.rules.log_truncated(replica)
    assert forks == cluster.history.forks


def test_of_a_file_that_is_truncated_already_nothing_is_synced_beyond_its_end(
    cluster: Cluster,
) -> None:
    files = MemoryFiles()
    log, _ = open_log(files, LogConfig())
    for _ in range(3):
        log.append_as_leader(memoryview(bytearray(batch_of(0, 2))), 0, 0)
    log.flush(6)
    partition = cast(Any, _Replica(log=log))
    assert 6 == log.recovery_point == cluster.rules.synced_end(partition)
    # A read that fails is the broker's, not of who looks at its disk from outside.
    files.fail("read", errno.EIO, path_end=".log")
    assert 6 == cluster.rules.synced_end(partition)
    with pytest.raises(StorageError):
        log.active_segment.file.read_at(0, 1)
    log.active_segment.truncate_to(4, 0)
    assert (6, 4) == (log.recovery_point, cluster.rules.synced_end(partition))
    log.active_segment.truncate_to(0, 0)
    assert 0 == cluster.rules.synced_end(partition)


def test_of_a_log_that_ended_as_it_was_started_again_nothing_counts_as_synced(
    cluster: Cluster,
) -> None:
    files = MemoryFiles()
    log, _ = open_log(files, LogConfig())
    log.append_as_leader(memoryview(bytearray(batch_of(0, 2))), 0, 0)
    log.flush(2)
    partition = cast(Any, _Replica(log=log))
    assert 2 == cluster.rules.synced_end(partition)
    files.stop_at(files.operations)
    with pytest.raises(MachineStopped):
        log.restart_at(20, 0)
    assert (2, 0) == (log.recovery_point, cluster.rules.synced_end(partition))


def test_a_power_cut_that_lost_nothing_excuses_nobody(cluster: Cluster) -> None:
    cluster.rules.record_lost_writes(1)
    cluster.rules.on_replica_change(cluster.history, cluster.replica(*range(COUNT)), 0)
    assert {} == cluster.history.lossy


def test_a_replica_is_lossy_until_it_has_all_of_before_again(cluster: Cluster) -> None:
    cluster.rules.record_lost_writes(1)
    for count, is_lossy in ((5, True), (COUNT - 1, True), (COUNT, False)):
        cluster.rules.on_replica_change(cluster.history, cluster.replica(*range(count)), 0)
        assert is_lossy is (1 in cluster.history.lossy)


def test_where_a_leader_goes_on_in_its_epoch_replicas_differ_up_to_their_ends(
    cluster: Cluster,
) -> None:
    cluster.history.awaited = Awaited("a reason", is_rewriting=True)
    assert "" == cluster.lead(*range(7))
    assert [Fork(7, COUNT + 2)] == cluster.history.forks
    assert cluster.history.is_forked(COUNT + 1, COUNT + 2)
    assert not cluster.history.is_forked(COUNT + 2, COUNT + 9)
    assert not cluster.history.is_forked(0, 7)


@pytest.mark.parametrize(
    ("fork", "lost"),
    [(Fork(7, COUNT), [(8, COUNT)]), (Fork(7, COUNT - 1), []), (Fork(9, COUNT), [])],
)
def test_a_leader_whose_log_ends_in_a_fork_loses_the_rest_of_the_fork_alone(
    cluster: Cluster, fork: Fork, lost: list[tuple[int, int]]
) -> None:
    # It cannot fetch over the records of its own, and stays in sync until the time for that ends.
    cluster.history.forks.append(fork)
    assert bool(lost) is (cluster.lead(*range(8)) == "")
    assert lost == cluster.lost


@pytest.mark.parametrize(
    ("leader", "isr", "is_unseen"),
    [
        (1, (1,), True),
        (2, (1, 2), True),
        # A controller has seen it go: it leads nothing, and is in sync as the last one alone.
        (2, (2,), False),
        (-1, (1,), False),
    ],
)
def test_a_loss_is_unseen_while_the_broker_leads_or_is_in_sync_beside_others(
    cluster: Cluster, leader: int, isr: tuple[int, ...], is_unseen: bool
) -> None:
    cluster.history.state = PartitionStateNode(leader, EPOCH, isr, 7)
    assert not cluster.rules.is_unseen(1)
    cluster.rules.record_lost_writes(1)
    assert is_unseen is cluster.rules.is_unseen(1)


@pytest.mark.parametrize(("epoch", "is_unseen"), [(7, False), (8, True)])
def test_a_loss_is_seen_while_the_controller_lives_that_knew_the_broker(
    cluster: Cluster, epoch: int, is_unseen: bool
) -> None:
    cluster.rules.on_controller_change(7)
    cluster.controllers(SimpleNamespace(epoch=7, live_brokers={1, 2}))
    cluster.rules.record_lost_writes(1)
    cluster.controllers(SimpleNamespace(epoch=epoch, live_brokers={1, 2}))
    assert is_unseen is cluster.rules.is_unseen(1)


@pytest.mark.parametrize("offsets", [range(7), range(COUNT)])
def test_in_an_epoch_that_is_new_nobody_differs_from_a_leader_that_lost_writes(
    cluster: Cluster, offsets: Iterable[int]
) -> None:
    # Followers truncate what they have of earlier epochs behind its end.
    cluster.rules.record_lost_writes(1)
    cluster.history.awaited = Awaited("a reason", is_rewriting=True)
    replica = cluster.replica(*offsets)
    assert "" == cluster.rules.on_leader_epoch(cluster.history, replica, 0, is_new_epoch=True)
    assert [] == cluster.history.forks
    assert cluster.lost == [(end, COUNT) for end in (max(offsets) + 1,) if end < COUNT]


def test_a_batch_is_in_a_fork_as_a_whole() -> None:
    history = History("t-0")
    for batch in batches(batch_of(0, 2) + batch_of(2, 3) + batch_of(5, 3)):
        history.commit(batch, 0)
    assert frozenset() == history.forked_offsets()
    history.forks.append(Fork(1, 3))
    assert frozenset(range(5)) == history.forked_offsets()


@pytest.mark.parametrize(("fork", "broken"), [(Fork(2, 4), []), (Fork(2, 2), ["T6"])])
def test_the_order_of_a_producers_records_is_that_of_whole_batches(
    fork: Fork, broken: list[str]
) -> None:
    # Records 4 to 6 come twice; of their first batch a part lies in the fork, or none.
    content = batch_of(0, 2) + batch_of(2, 3, number=4) + batch_of(5, 4, number=3)
    history, told = History("t-0"), list[str]()
    for batch in batches(content):
        history.commit(batch, 0)
    history.forks.append(fork)
    history.state = PartitionStateNode(1, EPOCH, (1,), 7)
    log = _Log(content)
    replica_manager = SimpleNamespace(partitions={T0: SimpleNamespace(log=log)})
    broker = SimpleNamespace(storage=SimpleNamespace(replica_manager=replica_manager))
    invariants = SimpleNamespace(
        history=lambda _: history,
        histories={T0: history},
        is_unseen=lambda _: False,
        losses=SimpleNamespace(),
        broke=lambda rule, *_: told.append(rule),
    )
    ledger = Ledger(cast(Any, invariants), cast(Any, SimpleNamespace()))
    producer = SimpleNamespace(name="p", kind=ProducerKind(-1, False, 1, 100))
    ledger.record_acknowledged(cast(Any, producer), SentBatch(T0, 0, 2), 0)
    ledger.check_end({1: cast(Any, SimpleNamespace(broker=broker))}, [T0])
    assert broken == told


def test_a_leader_that_hears_of_its_epochs_one_by_one_loses_all_in_the_first(
    cluster: Cluster,
) -> None:
    # It writes at the lost offsets before it hears of the epoch that is stored.
    cluster.rules.record_lost_writes(1)
    cluster.rules.on_replica_change(cluster.history, cluster.replica(*range(7)), 0)
    cluster.history.awaited = Awaited("a reason", is_rewriting=True)
    replica = cluster.replica(*range(7))
    replica.leader_epoch = EPOCH - 1
    assert "" == cluster.rules.on_leader_epoch(cluster.history, replica, 0)
    assert [(7, COUNT)] == cluster.lost
    assert [Fork(7, COUNT + 2)] == cluster.history.forks


@pytest.mark.parametrize(("epoch", "is_awaited"), [(EPOCH, False), (EPOCH - 1, True)])
def test_where_others_have_more_than_is_committed_they_differ_from_a_leader_that_lost_it(
    cluster: Cluster, epoch: int, is_awaited: bool
) -> None:
    # It may go on in the epoch that it had before it hears of the next one.
    cluster.ends[1] = COUNT + 1
    cluster.rules.record_lost_writes(1)
    cluster.history.awaited = Awaited("a reason", is_rewriting=True)
    replica = cluster.replica(*range(COUNT))
    replica.leader_epoch = epoch
    cluster.rules.on_replica_change(cluster.history, replica, 0)
    assert "" == cluster.rules.on_leader_epoch(cluster.history, replica, 0)
    assert [Fork(COUNT, COUNT + 2)] == cluster.history.forks
    assert (is_awaited, []) == (cluster.history.awaited is not None, cluster.history.losses)


@pytest.mark.parametrize("lost_from", [None, COUNT - 1])
def test_a_leader_out_of_sync_may_begin_behind_what_is_committed(
    cluster: Cluster, lost_from: int | None
) -> None:
    # It deleted by age what others had, and these lost to another what is in its log.
    cluster.history.awaited = Awaited("a reason", is_unclean=True)
    cluster.history.start = COUNT if lost_from is None else lost_from
    assert "" == cluster.lead(COUNT + 2)
    assert (COUNT + 2, COUNT + 2) == (cluster.history.start, cluster.history.committed_end)
    assert cluster.lost == ([] if lost_from is None else [(lost_from, COUNT)])


@pytest.mark.parametrize(
    ("losses", "start", "broken"),
    [
        ([(7, COUNT)], COUNT, None),
        ([(7, COUNT)], 8, None),
        ([(7, COUNT)], COUNT + 1, "R6"),
        ([(7, COUNT), (COUNT + 1, COUNT + 3)], COUNT + 3, "R6"),
        ([], COUNT + 1, "R6"),
    ],
)
def test_a_leader_that_deleted_all_that_was_lost_begins_behind_it_and_nowhere_else(
    monkeypatch: pytest.MonkeyPatch,
    losses: list[tuple[int, int]],
    start: int,
    broken: str | None,
) -> None:
    # It was in sync in what the store was set back to, and deleted by age before it heard more.
    monkeypatch.setattr(invariants_module, "content_batches", lambda *_: [])
    invariants = Invariants(Rules(1, False, False), {}, on_broken=lambda: None)
    history = invariants.history(T0)
    for batch in batches(log_of(*range(COUNT))):
        history.commit(batch, 0)
    for first, end in losses[:1]:
        history.lose(Loss(first, end, "a reason", 0), 2)
    for first, end in losses[1:]:
        history.lose_of_before(Loss(first, end, "a reason", 0), [])
    partition = SimpleNamespace(log=SimpleNamespace(log_start_offset=start), topic_partition=T0)
    invariants._commit(history, 1, cast(Any, partition), start, has_risen=False)
    violation = invariants.violation
    assert broken == (None if violation is None else violation.rule)
    assert start == history.committed_end
    assert (start if broken is None else 0) == history.start


@pytest.mark.parametrize(("seen_count", "is_lost"), [(0, True), (1, False)])
def test_what_is_sent_behind_a_loss_is_promised_again(seen_count: int, is_lost: bool) -> None:
    history = History("t-0")
    history.losses.append(Loss(3, 8, "a reason", 0))
    assert is_lost is history.is_lost(7, 9, seen_count)
    assert not history.is_lost(8, 9, seen_count)


@pytest.mark.parametrize(("position", "resumed"), [(3, None), (4, 3), (8, 3), (9, None)])
def test_a_reader_goes_back_only_if_it_read_into_what_is_lost(
    position: int, resumed: int | None
) -> None:
    history = History("t-0")
    history.losses.append(Loss(3, 8, "a reason", 0))
    assert resumed == history.resume_at(position)


def test_a_read_while_nobody_is_seen_to_lead_is_checked_when_it_is_known(
    cluster: Cluster,
) -> None:
    told: list[str] = []
    history = History("t-0")
    invariants = SimpleNamespace(
        history=lambda _: history,
        histories={T0: history},
        is_unseen=lambda _: True,
        losses=SimpleNamespace(),
        broke=lambda rule, *_: told.append(rule),
    )
    ledger = Ledger(cast(Any, invariants), cast(Any, SimpleNamespace()))
    ledger.read("c", T0, 0, log_of(0, 1))
    ledger.check_all()
    assert [] == told
    history.commit(next(batches(log_of(0))), 0)
    ledger.check_all()
    assert [] == told
    ledger.check_all(is_end=True)
    assert ["R14"] == told


@pytest.mark.parametrize(("fork", "broken"), [(Fork(0, 3), []), (Fork(0, 2), ["R14"])])
def test_offsets_of_a_fork_may_be_missing_where_a_log_was_cut_in_a_batch_of_it(
    cluster: Cluster, fork: Fork, broken: list[str]
) -> None:
    cluster.history.forks.append(fork)
    told: list[str] = []
    invariants = SimpleNamespace(
        history=lambda _: cluster.history,
        is_unseen=lambda _: False,
        losses=SimpleNamespace(),
        histories={},
        rots=SimpleNamespace(hides=lambda *_: False),
        broke=lambda rule, *_: told.append(rule),
    )
    Ledger(cast(Any, invariants), cast(Any, SimpleNamespace())).read("c", T0, 2, log_of(3, 4))
    assert broken == told


@pytest.mark.parametrize(
    ("log_epoch", "end", "forks"),
    [(1, COUNT, [Fork(7, COUNT)]), (-1, 7, []), (2, COUNT, [])],
)
def test_where_a_leader_still_has_what_was_lost_members_may_lack_it(
    cluster: Cluster, log_epoch: int, end: int, forks: list[Fork]
) -> None:
    # It was in sync and away while a leader went on in epoch 2 that had lost records from 7 on.
    cluster.history.lose(Loss(7, COUNT, "a reason", 0), 2)
    replica = cluster.replica(*range(end))
    cluster.set_last_epoch(log_epoch)
    assert "" == cluster.rules.on_leader_epoch(cluster.history, replica, 0)
    assert forks == cluster.history.forks


@pytest.mark.parametrize("stale_epoch", [None, EPOCH - 1])
def test_a_leader_of_before_a_loss_may_repeat_a_response(stale_epoch: int | None) -> None:
    # The batch is sent again after the loss was seen, and answered from that leader's log.
    history, broken = History("t-0"), list[str]()
    for batch in batches(log_of(*range(COUNT))):
        history.commit(batch, 0)
    history.lose(Loss(7, COUNT, "a reason", 0), EPOCH)
    invariants = SimpleNamespace(
        history=lambda _: history,
        histories={T0: history},
        is_unseen=lambda _: False,
        is_led_in_an_epoch_before_loss=lambda _: stale_epoch is not None,
        losses=SimpleNamespace(),
        broke=lambda rule, *_: broken.append(rule),
    )
    ledger = Ledger(cast(Any, invariants), cast(Any, SimpleNamespace()))
    producer = SimpleNamespace(name="p", kind=ProducerKind(-1, True, 1, 100))
    sent = SentBatch(T0, 7, 2)
    sent.loss_count = 1
    ledger.record_acknowledged(cast(Any, producer), sent, 7)
    assert broken == (["R8"] if stale_epoch is None else [])


@pytest.mark.parametrize(
    ("needs_recovery", "damage", "is_lossy"),
    [
        (True, {}, True),
        (False, {"is_misplacing": True}, True),
        (False, {"is_hiding": True}, True),
        (False, {}, False),
    ],
)
def test_a_process_that_ends_may_lose_what_is_damaged(
    cluster: Cluster, needs_recovery: bool, damage: dict[str, bool], is_lossy: bool
) -> None:
    # A log that was closed in order is recovered where a damaged length hides the next batch, and
    # deleted where the last offset comes to be below its start.
    rot = BitRot(1, T0, 7, **damage)
    cluster.rots.damage_of = lambda _: rot  # type: ignore[method-assign]
    node = SimpleNamespace(broker_id=1, needs_recovery=lambda _: needs_recovery)
    cluster.rules.on_process_end(cast(Any, node))
    assert is_lossy == (1 in cluster.history.lossy)


@pytest.mark.parametrize(("truncated_at", "appended", "is_lossy"), [(9, 0, True), (9, 1, False)])
def test_a_log_that_was_truncated_behind_its_last_record_ends_there_in_its_next_life(
    cluster: Cluster, truncated_at: int, appended: int, is_lossy: bool
) -> None:
    replica = cluster.replica(*range(7))
    replica.log.log_end_offset = truncated_at
    cluster.rules.log_truncated(replica)
    replica.log.log_end_offset += appended
    node = cast(Any, SimpleNamespace(broker_id=1))
    cluster.rules.on_process_end(node)
    assert is_lossy == (1 in cluster.history.lossy)
    cluster.history.lossy.clear()
    cluster.rules.on_process_end(node)
    assert 1 not in cluster.history.lossy


@pytest.mark.parametrize(
    ("losses", "forks", "is_excused"),
    [
        ([], [], False),
        ([Loss(0, 0, "the store was set back", 0)], [], False),
        ([Loss(0, 0, "the store was set back", 0), Loss(3, 4, "", 0)], [], True),
        ([], [Fork(1, 2)], True),
    ],
)
def test_a_partition_counts_as_excused_only_for_offsets(
    losses: list[Loss], forks: list[Fork], is_excused: bool
) -> None:
    history = History("t-0")
    history.losses, history.forks = losses, forks
    assert history.is_excused is is_excused


def test_a_loss_begins_with_the_leader_s_batch_that_reaches_out_of_a_fork(
    cluster: Cluster,
) -> None:
    # Others have other batches at 5 and 6; the leader's batch of 5 to 7 is in their place.
    cluster.history.forks.append(Fork(5, 7))
    cluster.history.awaited = Awaited("a reason", is_unclean=True)
    replica = cluster.replica(*range(8))
    cluster._content = log_of(*range(5)) + batch_of(5, 3)
    assert "" == cluster.rules.on_leader_epoch(cluster.history, replica, 0)
    assert [(5, COUNT)] == cluster.lost
    assert 5 == cluster.history.committed_end
