"""A follower of the same process whose fetch stands: given records, partition by partition.

Source: PUR-5, PUR-7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from engine.host.promise import Promise
from engine.limits import SENDFILE_BYTES_MIN
from engine.log.log_config import LogConfig
from engine.log.log_types import FetchSlice
from engine.model import TopicPartition
from engine.replication.delayed_fetch import FetchResults
from engine.replication.follower_encoders import LocalEncoder, RemoteEncoder
from engine.replication.follower_session import LocalPosition, LocalSession
from engine.replication.following.fetch_state import PartitionResponse
from engine.replication.following.local_fetch import LocalFetch
from engine.replication.following.replica_fetcher import ReplicaFetcher
from engine.replication.parked_fetch import LeaderSide, ParkedFetch
from engine.replication.partition import Partition
from engine.replication.partition_types import FetchParams, FetchSpec
from engine.replication.replica_manager import ReplicaManager
from tests.unit.broker.memory_cluster import T0, MemoryCluster
from tests.unit.log.writing import NOW_MS, PARTITION, fill, log_that_lost_its_end, new_log, sent
from tests.unit.replication.replicas import (
    FOLLOWER,
    Broker,
    borrowed_segments,
    fetched,
    leader_of,
    log_of,
    partition_of,
    state,
)

T1 = TopicPartition("t", 1)


class Rounds:
    """A cluster whose broker 2 follows broker 1, and its rounds with it, counted."""

    def __init__(self, **settings: str) -> None:
        self.cluster = MemoryCluster(is_one_process=True, **settings)
        self.cluster.create_topic(replicas=[(1, 2), (1, 2)])
        self.cluster.pass_time(2000)
        for key in (T0, T1):
            # The first record of an epoch is not given during a round.
            assert 0 == self.cluster.produce(1, 1, key=key).code()
        self.count = 0
        serve = self.cluster.local[1]

        def counting(name: str, version: int, request: object) -> Promise[Any]:
            self.count += isinstance(request, LocalFetch)
            return serve(name, version, request)

        self.cluster.local[1] = counting
        # The first round that is counted.
        self.cluster.pass_time(1000)
        assert self.count > 0
        self.count = 0

    @property
    def leader(self) -> ReplicaManager:
        return self.cluster.brokers[1].storage.replica_manager

    @property
    def fetcher(self) -> ReplicaFetcher:
        return self.cluster.brokers[2].storage.fetchers.fetchers[1, 0]

    def append(self, key: TopicPartition = T0) -> Promise[Any]:
        """Append at the leader; no turn of the loop has been run since."""
        appended = self.leader.append_records({key: memoryview(bytearray(sent(3)))}, -1, 5000)
        assert isinstance(appended, Promise)
        return appended

    def ends(self) -> dict[int, tuple[int, int]]:
        """Return log end and watermark of both replicas."""
        replicas = {id_: self.cluster.partition(id_) for id_ in (1, 2)}
        return {id_: (it.log.log_end_offset, it.high_watermark) for id_, it in replicas.items()}

    def run(self) -> None:
        """Run what is due."""
        self.cluster.timers.run_until_idle()


@pytest.fixture
def rounds() -> Rounds:
    return Rounds()


def test_records_are_sent_and_acknowledged_during_a_fetch_cycle(rounds: Rounds) -> None:
    for key in (T0, T1, T0):
        appended = rounds.append(key)
        rounds.run()
        assert [None] == [result.error for result in appended.result().values()]
    assert 0 == rounds.count
    assert rounds.cluster.content(1) == rounds.cluster.content(2)
    assert {1: (7, 7), 2: (7, 4)} == rounds.ends()


def test_the_fetch_cycle_ends_at_its_deadline_with_the_watermark(rounds: Rounds) -> None:
    rounds.append()
    rounds.run()
    assert {1: (4, 4), 2: (4, 1)} == rounds.ends()
    rounds.cluster.pass_time(600)
    assert {1: (4, 4), 2: (4, 4)} == rounds.ends()
    assert 1 <= rounds.count <= 2


def test_what_is_appended_before_the_follower_had_its_turn_is_given_behind(rounds: Rounds) -> None:
    first, second = rounds.append(), rounds.append()
    rounds.run()
    assert first.is_kept
    assert second.is_kept
    assert 0 == rounds.count
    assert rounds.cluster.content(1) == rounds.cluster.content(2)


def test_a_region_of_a_file_is_given_too(rounds: Rounds) -> None:
    for _ in range(400):
        rounds.append()
    rounds.run()
    assert 1201 == rounds.ends()[2][0]
    assert rounds.cluster.content(1) == rounds.cluster.content(2)


def test_what_a_fetcher_does_not_follow_any_more_ends_the_round(rounds: Rounds) -> None:
    appended = rounds.append()
    rounds.fetcher.followed.remove(T0)
    rounds.run()
    assert not appended.is_kept
    assert 1 == rounds.ends()[2][0]
    assert 1 == rounds.count
    kept = rounds.append(T1)
    rounds.run()
    assert kept.is_kept


def test_a_fetcher_that_closes_leaves_nothing_parked_at_its_leader(rounds: Rounds) -> None:
    assert 1 == rounds.leader.delayed_fetch_count
    rounds.fetcher.close()
    assert 0 == rounds.leader.delayed_fetch_count
    rounds.append()
    rounds.run()
    assert 1 == rounds.ends()[2][0]


def test_an_answer_that_came_twice_is_taken_once(rounds: Rounds) -> None:
    appended = rounds.append()
    # The deadline comes before the follower's turn: the whole round is answered too.
    rounds.cluster.clock.advance(600)
    rounds.leader.advance()
    rounds.run()
    assert appended.is_kept
    assert rounds.cluster.content(1) == rounds.cluster.content(2)
    assert {1: (4, 4), 2: (4, 1)} == rounds.ends()


def test_a_leader_that_died_is_left_out(rounds: Rounds) -> None:
    dead = rounds.leader
    before = dead.partitions[T0].followers[2]
    rounds.append()
    rounds.cluster.cut_power(1)
    rounds.run()
    assert 1 == rounds.cluster.partition(2).log.log_end_offset
    assert before == dead.partitions[T0].followers[2]


def test_a_replica_out_of_sync_takes_rounds() -> None:
    rounds = Rounds(replica_lag_time_max_ms="2000", auto_leader_rebalance_enable="false")
    cluster = rounds.cluster
    cluster.stop(2)
    cluster.pass_time(4000)
    assert (1,) == cluster.partition(1).in_sync.isr
    cluster.start(2)
    assert 0 == cluster.produce(1, 3, acks=1).code()
    cluster.pass_time(3000)
    assert [1, 2] == sorted(cluster.partition(1).in_sync.isr)
    rounds.count = 0
    appended = rounds.append()
    rounds.run()
    assert appended.is_kept
    assert 0 == rounds.count


def test_the_first_record_of_an_epoch_comes_with_a_round(rounds: Rounds) -> None:
    cluster = rounds.cluster
    assert 0 == cluster.produce(1, 3).code()
    cluster.stop(1)
    cluster.start(1)
    cluster.pass_time(3000)
    leader = cluster.stored().leader
    assert 2 == leader
    assert 0 == cluster.produce(leader, 3).code()
    cluster.pass_time(600)
    assert {1: (7, 7), 2: (7, 7)} == rounds.ends()
    assert cluster.content(1) == cluster.content(2)


def test_deleted_records_are_gone_for_clients_of_the_follower(rounds: Rounds) -> None:
    rounds.append()
    rounds.run()
    rounds.cluster.pass_time(1200)
    rounds.count = 0
    deleted = rounds.leader.delete_records({T0: 2}, 5000)
    assert isinstance(deleted, Promise)
    rounds.append()
    rounds.run()
    assert deleted.is_kept
    assert [2] == [result.low_watermark for result in deleted.result().values()]
    assert 0 == rounds.count


def positions_of(
    specs: Mapping[TopicPartition, FetchSpec],
) -> Mapping[TopicPartition, LocalPosition]:
    """Return the positions of a session that has been told nothing."""
    session = LocalSession(None)
    session.update_positions(specs.items())
    return session.positions


class Standing:
    """A leader of one partition, and a follower's fetch that stands there."""

    def __init__(self, broker: Broker, spec: FetchSpec, params: FetchParams = FOLLOWER) -> None:
        self.given: list[PartitionResponse] = []
        self.positions = positions_of({PARTITION: spec})
        promise = broker.manager.fetch(params, [(PARTITION, spec)], self._stand, self.positions)
        assert isinstance(promise, Promise)
        self.promise: Promise[FetchResults] = promise

    def _stand(
        self,
        deadline_ms: int,
        params: FetchParams,
        keys: Iterable[TopicPartition],
        leader: LeaderSide,
    ) -> ParkedFetch:
        self.leader = leader
        self.encoder = LocalEncoder(self._give)
        self.fetch = ParkedFetch(deadline_ms, params, keys, leader, self.positions, self.encoder)
        return self.fetch

    def _give(
        self,
        _leader: LocalEncoder,
        _key: TopicPartition,
        _spec: FetchSpec,
        answer: PartitionResponse,
    ) -> None:
        self.given.append(answer)


LACKING_ALL = FetchSpec(0, 1 << 20, 0, 0, 0)


def test_a_follower_in_sync_is_given_one_answer_after_the_other() -> None:
    broker = Broker((1, 2))
    parked = Standing(broker, LACKING_ALL)
    broker.produce(sent(), 1)
    broker.produce(sent(2), 1)
    assert [len(sent())] == [len(answer.records) for answer in parked.given]
    parked.encoder.on_appended(PARTITION, LACKING_ALL._replace(fetch_offset=1))
    assert 1 == broker.partition.high_watermark
    parked.encoder.on_appended(PARTITION, LACKING_ALL._replace(fetch_offset=3))
    assert (3, 2) == (broker.partition.high_watermark, len(parked.given))
    assert not parked.promise.is_kept
    told = parked.positions[PARTITION]
    assert (1, 0) == (told.high_watermark, told.log_start_offset)
    parked.encoder.on_appended(PARTITION, None)
    assert parked.promise.is_kept
    assert -1 == told.high_watermark, "the follower may have passed it over"


def test_what_came_meanwhile_is_given_though_another_holds_the_watermark() -> None:
    broker = Broker((1, 2, 3))
    parked = Standing(broker, LACKING_ALL)
    broker.produce(sent(), 1)
    broker.produce(sent(), 1)
    parked.encoder.on_appended(PARTITION, LACKING_ALL._replace(fetch_offset=1))
    assert (2, 0) == (len(parked.given), broker.partition.high_watermark)
    assert not parked.promise.is_kept


def test_what_a_follower_cannot_be_given_once_it_took_ends_the_fetch() -> None:
    broker = Broker((1, 2, 3))
    parked = Standing(broker, LACKING_ALL)
    broker.produce(sent(), 1)
    broker.produce(sent(), 1)
    following = LACKING_ALL._replace(fetch_offset=1, last_fetched_epoch=None)
    parked.encoder.on_appended(PARTITION, following)
    assert (1, True) == (len(parked.given), parked.promise.is_kept)


def test_the_batch_that_was_appended_last_is_given_as_it_was_kept() -> None:
    broker = Broker((1, 2))
    parked = Standing(broker, LACKING_ALL)
    assert broker.manager.append_records_fast(PARTITION, sent(), 1, 0) is not None
    assert broker.partition.newest is not None
    assert [broker.partition.newest.data] == [answer.records for answer in parked.given]
    assert broker.partition.newest.data is parked.given[0].records


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(LACKING_ALL._replace(last_fetched_epoch=None), id="of no epoch yet"),
        pytest.param(LACKING_ALL._replace(fetch_offset=9), id="beyond the end"),
    ],
)
def test_who_is_not_in_the_leaders_epoch_or_log_is_answered_with_all(spec: FetchSpec) -> None:
    broker = Broker((1, 2))
    leader = Standing(broker, LACKING_ALL).leader
    broker.partition.append(sent(), 1)
    given: list[PartitionResponse] = []
    positions = positions_of({PARTITION: spec})
    encoder = LocalEncoder(lambda *answer: given.append(answer[-1]))
    fetch = ParkedFetch(100, FOLLOWER, positions, leader, positions, encoder)
    assert fetch.can_complete_after(PARTITION)
    assert [] == given


def test_what_is_given_is_counted_and_its_file_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    borrowed = borrowed_segments(monkeypatch)
    broker = Broker((1, 2), log_config=LogConfig())
    parked = Standing(broker, LACKING_ALL)
    batch = sent(value=b"v" * SENDFILE_BYTES_MIN)
    broker.partition.append(batch, 1)
    broker.quota.bound_per_s = 1
    assert not broker.quota.is_exceeded
    assert not parked.fetch.can_complete_after(PARTITION)
    assert [len(batch)] == [len(answer.records) for answer in parked.given]
    assert broker.quota.is_exceeded
    assert [] == borrowed


def test_a_partition_that_goes_ends_the_fetch_that_stands() -> None:
    broker = Broker((1, 2))
    parked = Standing(broker, FetchSpec(0, 1 << 20, 0))
    broker.manager.remove(PARTITION)
    assert [3] == [result.error.code for _, result in parked.promise.result() if result.error]


def test_a_leader_that_leads_no_more_ends_the_fetch_that_stands() -> None:
    broker = Broker((1, 2))
    parked = Standing(broker, FetchSpec(0, 1 << 20, 0))
    change = broker.partition.become_follower(state((2, 1), leader=2, partition_epoch=1))
    broker.manager.perform(change.effects)
    assert [6] == [result.error.code for _, result in parked.promise.result() if result.error]


def test_a_partition_that_is_not_here_ends_the_fetch_of_who_took_it() -> None:
    parked = Standing(Broker((1, 2)), FetchSpec(0, 1 << 20, 0))
    parked.leader.took(parked.fetch, TopicPartition("other", 0), FetchSpec(1, 1 << 20, 0))
    assert parked.promise.is_kept


def test_a_follower_that_is_no_longer_assigned_gets_an_error() -> None:
    broker, spec = Broker((1, 2)), FetchSpec(0, 1 << 20, 0)
    parked = Standing(broker, spec)
    broker.partition.become_leader(state((1,), replicas=(1, 3), partition_epoch=1))
    parked.leader.took(parked.fetch, PARTITION, spec)
    assert [75] == [result.error.code for _, result in parked.promise.result() if result.error]


def test_a_follower_that_took_no_records_completes_a_deletion_with_its_start() -> None:
    broker = Broker((1, 2), is_alive=lambda broker_id: broker_id != 3)
    broker.produce(sent(2), 1)
    broker.manager.perform(fetched(broker.partition, 2))
    spec = FetchSpec(2, 1 << 20, 0, 0, 0)
    parked = Standing(broker, spec)
    deletion = broker.manager.delete_records({PARTITION: 1}, 1000)
    assert isinstance(deletion, Promise)
    parked.leader.took(parked.fetch, PARTITION, spec._replace(log_start_offset=1))
    assert [1] == [result.low_watermark for result in deletion.result().values()]


def test_a_follower_whose_log_has_parted_does_not_stand() -> None:
    log = new_log()
    fill(log, [1], epoch=1)
    fill(log, [1], epoch=3)
    partition = partition_of(log=log)
    partition.become_leader(state((1, 2), epoch=4))
    broker = Broker((1, 2))
    leader = Standing(broker, FetchSpec(0, 1 << 20, 0)).leader
    broker.manager.add(partition)
    for epoch, is_parted in ((3, False), (2, True)):
        positions = positions_of({PARTITION: FetchSpec(2, 1 << 20, 4, epoch)})
        fetch = ParkedFetch(
            100, FOLLOWER, positions, leader, positions, LocalEncoder(lambda *_: None)
        )
        assert is_parted is fetch.can_complete()


def test_a_follower_before_an_end_without_records_stands_until_there_are_some() -> None:
    # What was behind offset 0 was superseded by records that are cut off by now.
    broker = Broker((1, 2), log=log_that_lost_its_end(0, 9))
    parked = Standing(broker, LACKING_ALL._replace(last_fetched_epoch=None))
    assert not parked.fetch.can_complete_after(PARTITION)
    broker.produce(sent(), 1)
    assert parked.promise.is_kept
    assert [len(sent())] == [result.size_bytes for _, result in parked.promise.result()]


def test_a_follower_that_the_logs_start_has_passed_gets_an_error() -> None:
    broker = Broker((1, 2))
    parked = Standing(broker, LACKING_ALL._replace(last_fetched_epoch=None))
    broker.partition.log.restart_at(9, NOW_MS)
    assert parked.fetch.can_complete_after(PARTITION)


class Session:
    """A follower of another process, whose session's fetch stands and is answered."""

    def __init__(
        self,
        *moved: TopicPartition,
        told: tuple[TopicPartition, ...] = (),
        is_current: bool = True,
        spec: FetchSpec = LACKING_ALL,
    ) -> None:
        """It was not told of other partitions that have `moved`, and of others that were `told`."""
        self.broker = Broker((1, 2), log_config=LogConfig())
        self.answers: list[int] = []
        self.is_current = is_current
        leader = Standing(self.broker, LACKING_ALL).leader
        for key in (*moved, *told):
            self.broker.manager.add(leader_of((1, 2), self.broker.clock, log=log_of(key)))
        positions = positions_of(dict.fromkeys((PARTITION, *moved, *told), spec))
        self.told = positions[PARTITION]
        for key in (PARTITION, *told):
            positions[key].note_offsets(0, 0)
        self.encoder = RemoteEncoder(self._respond)
        self.fetch = ParkedFetch(100, FOLLOWER, positions, leader, positions, self.encoder)

    def ask(self, spec: FetchSpec) -> None:
        """Ask for what is behind a position."""
        self.told.spec = spec
        self.encoder.on_request(self.fetch, PARTITION)

    def _respond(self, _partition: Partition, records: bytes | FetchSlice) -> bool:
        size = len(records) if isinstance(records, bytes) else records.size_bytes
        if self.is_current:
            self.answers.append(size)
        return self.is_current

    def append(self, batch: memoryview) -> bool:
        """Append a batch; returns whether that ends the fetch."""
        self.broker.partition.append(memoryview(bytearray(batch)), 1)
        return self.fetch.can_complete_after(PARTITION)


def test_a_session_is_answered_once_for_each_time_that_it_asks() -> None:
    session, size = Session(), len(sent())
    session.told.high_watermark = -1
    session.broker.quota.bound_per_s = 1
    assert not session.encoder.may_fetch_alone(session.fetch, PARTITION)
    for _ in range(2):
        assert not session.append(sent())
    assert ([size], True) == (session.answers, session.broker.quota.is_exceeded)
    assert session.encoder.may_fetch_alone(session.fetch, PARTITION)
    assert not session.encoder.may_fetch_alone(session.fetch, TopicPartition("other", 0))
    session.ask(LACKING_ALL._replace(fetch_offset=1))
    assert [size, size] == session.answers
    assert 1 == session.broker.partition.high_watermark
    session.ask(LACKING_ALL._replace(fetch_offset=2))
    assert ([size, size], 2) == (session.answers, session.broker.partition.high_watermark)
    assert not session.fetch.is_completed


def test_what_had_no_room_in_an_answer_comes_with_the_next() -> None:
    size = len(sent())
    spec = LACKING_ALL._replace(max_bytes=size)
    session = Session(spec=spec)
    session.broker.partition.append(sent(), 1)
    assert not session.append(sent())
    assert [size] == session.answers
    session.ask(spec._replace(fetch_offset=1))
    assert [size, size] == session.answers


@pytest.mark.parametrize(
    ("moved", "is_current"),
    [
        pytest.param((TopicPartition("other", 0),), True, id="others moved too"),
        pytest.param((), False, id="the session is another by now"),
    ],
)
def test_what_is_not_one_partitions_news_ends_a_sessions_fetch(
    moved: tuple[TopicPartition, ...], is_current: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(*moved, is_current=is_current)
    borrowed = borrowed_segments(monkeypatch)
    assert session.append(sent(value=b"v" * SENDFILE_BYTES_MIN))
    assert ([], []) == (session.answers, borrowed)


def test_a_partition_that_was_checked_without_new_records_has_moved() -> None:
    other = TopicPartition("other", 0)
    session = Session(told=(other,))
    assert not session.fetch.can_complete_after(PARTITION)
    assert not session.fetch.can_complete_after(other)
    assert session.append(sent())
    assert [] == session.answers


# Positions that a leader refuses. Its log: records of epochs 1 and 3, then those of its own.

HAS_ALL = FetchSpec(4, 1 << 20, 4, 4, 0)
TOOK_ALL = HAS_ALL._replace(fetch_offset=2004)
REFUSED = pytest.mark.parametrize(
    ("spec", "code"),
    [
        pytest.param(TOOK_ALL._replace(current_leader_epoch=3), 74, id="an epoch before"),
        pytest.param(TOOK_ALL._replace(current_leader_epoch=5), 75, id="an epoch to come"),
        pytest.param(TOOK_ALL._replace(last_fetched_epoch=2), 0, id="parted, at the end"),
        pytest.param(TOOK_ALL._replace(fetch_offset=9999), 0, id="parted, past the end"),
        pytest.param(
            TOOK_ALL._replace(fetch_offset=9999, last_fetched_epoch=None), 1, id="past the end"
        ),
    ],
)


class Epochs:
    """A leader of its third epoch, and parked fetches of a follower: near, and of a session."""

    def __init__(self) -> None:
        log = new_log(LogConfig())
        fill(log, [1], epoch=1)
        fill(log, [2], epoch=3)
        self.broker = Broker((1, 2), log=log)
        self.partition = self.broker.partition
        self.partition.become_leader(state((1, 2), epoch=4, partition_epoch=1))
        self.broker.produce(sent(), 1)
        self.local = Standing(self.broker, HAS_ALL)
        positions = positions_of({PARTITION: HAS_ALL})
        self.told = positions[PARTITION]
        self.told.note_offsets(self.partition.high_watermark, 0)
        self.encoder = RemoteEncoder(lambda *_: True)
        self.session = ParkedFetch(
            100, FOLLOWER, positions, self.local.leader, positions, self.encoder
        )
        self.broker.produce(sent(2000), 1)
        assert not self.session.can_complete_after(PARTITION)
        assert (4, 4) == self.noted()

    def noted(self) -> tuple[int, int]:
        """Return how far the follower is known to be, and the watermark."""
        return self.partition.followers[2].log_end_offset, self.partition.high_watermark


def codes_of(results: FetchResults) -> list[int]:
    return [0 if result.error is None else result.error.code for _, result in results]


@REFUSED
def test_a_position_of_a_session_that_is_refused_is_no_progress(spec: FetchSpec, code: int) -> None:
    epochs = Epochs()
    promise = epochs.session.promise
    epochs.told.spec = spec
    epochs.encoder.on_request(epochs.session, PARTITION)
    assert (4, 4) == epochs.noted()
    assert [code] == codes_of(promise.result())


@REFUSED
def test_a_position_in_the_same_process_that_is_refused_is_no_progress(
    spec: FetchSpec, code: int
) -> None:
    epochs = Epochs()
    epochs.local.encoder.on_appended(PARTITION, spec)
    assert (4, 4) == epochs.noted()
    assert [code] == codes_of(epochs.local.promise.result())


def test_a_position_that_the_logs_start_has_passed_is_no_progress() -> None:
    epochs = Epochs()
    epochs.partition.log.restart_at(5000, NOW_MS)
    epochs.local.encoder.on_appended(PARTITION, TOOK_ALL._replace(last_fetched_epoch=None))
    assert (4, 4) == epochs.noted()
    assert [1] == codes_of(epochs.local.promise.result())


def test_a_position_that_a_read_takes_is_progress() -> None:
    for spec in (TOOK_ALL, TOOK_ALL._replace(last_fetched_epoch=None)):
        epochs = Epochs()
        epochs.local.encoder.on_appended(PARTITION, spec)
        assert (2004, 2004) == epochs.noted()
        epochs = Epochs()
        epochs.told.spec = spec
        epochs.encoder.on_request(epochs.session, PARTITION)
        assert (2004, 2004) == epochs.noted()
