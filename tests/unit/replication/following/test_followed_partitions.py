"""A fetcher between real replicas: what it asks, and what it does with the answers."""

from __future__ import annotations

import errno

import pytest

from engine.host.memory import ManualClock, MemoryFiles
from engine.host.ports import LogDirOffline
from engine.ids import uuid_text
from engine.kafka_errors import (
    FENCED_LEADER_EPOCH,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    UNKNOWN_LEADER_EPOCH,
    kafka_error,
)
from engine.log.epoch_cache import EpochGap
from engine.log.log_messages import LogStartReason
from engine.model import TopicPartition
from engine.records.batch import BatchView
from engine.replication.following.fetch_state import FetchPhase, PartitionResponse
from engine.replication.following.followed_partitions import (
    EpochAnswer,
    EpochRequest,
    FollowedPartitions,
    LeaderEnds,
    ReplicaFetcherConfig,
)
from engine.replication.following.follower_logs import FollowerLogs
from engine.replication.partition import Partition
from engine.replication.partition_types import EpochEnd, FetchSpec
from engine.replication.replica_manager import ReplicaManager
from tests.scripts.follower import answers_of, ends_of, epochs_of
from tests.unit.log.writing import PARTITION, batches_of, fill, new_log, open_log, sent
from tests.unit.replication.replicas import log_of, partition_of, ports_of, quota_of, state

BACKOFF_MS = 1000
OTHER = TopicPartition("t", 1)


class Pair:
    """Broker 1 leads, broker 2 follows with a fetcher; both have the same epoch."""

    def __init__(self, epoch: int = 5) -> None:
        self.clock = ManualClock()
        self.leader = ReplicaManager(self.clock, ports_of())
        self.replicas = ReplicaManager(self.clock, ports_of())
        self.led = partition_of(self.clock)
        self.own = Partition(2, new_log(), self.clock, is_alive=lambda _id: True)
        self.leader.add(self.led)
        self.replicas.add(self.own)
        self.followed = FollowedPartitions(
            FollowerLogs(self.replicas), self.clock, quota_of(self.clock)
        )
        self.epoch = epoch

    def begin(self) -> Pair:
        """Give both their roles, and begin to follow."""
        both = state((1, 2), replicas=(1, 2), epoch=self.epoch)
        self.led.become_leader(both)
        self.own.become_follower(both)
        self.followed.follow(PARTITION, self.epoch)
        return self

    def round(self, count: int = 1) -> Pair:
        """Ask the leader, and take what it says."""
        for _ in range(count):
            requested = self.followed.start_cycle()
            self.followed.apply_responses(answers_of(self.leader, 2, requested))
            ends = self.followed.requested_ends()
            self.followed.apply_leader_ends(ends, ends_of(self.leader, ends))
            epochs = self.followed.requested_epoch_ends()
            self.followed.apply_epoch_ends(epochs, epochs_of(self.leader, epochs))
        return self

    def answer(self, error_code: int, key: TopicPartition = PARTITION) -> Pair:
        """Take an error in place of an answer."""
        self.followed.start_cycle()
        self.followed.apply_responses([(key, PartitionResponse(error_code))])
        return self

    def assert_same(self) -> None:
        assert batches_of(self.led.log) == batches_of(self.own.log)
        assert self.led.log.log_end_offset == self.own.log.log_end_offset


def test_two_rounds_bring_the_records_and_then_the_watermark() -> None:
    pair = Pair().begin()
    pair.led.append(sent(2), 1)
    pair.round()
    assert (2, 0, 0) == (
        pair.own.log.log_end_offset,
        pair.own.high_watermark,
        pair.led.high_watermark,
    )
    assert 0 == pair.followed.states[PARTITION].lag
    pair.round()
    assert 2 == pair.led.high_watermark
    # An answer without a wait was read before the fetch was noted.
    pair.round()
    assert 2 == pair.own.high_watermark
    pair.assert_same()


def test_the_request_has_the_epochs_and_both_ends() -> None:
    pair = Pair(epoch=5)
    fill(pair.own.log, [3], epoch=4)
    spec = pair.begin().followed.start_cycle()[PARTITION]
    assert (3, 5, 4, 0) == (
        spec.fetch_offset,
        spec.current_leader_epoch,
        spec.last_fetched_epoch,
        spec.log_start_offset,
    )


def test_a_log_that_parted_is_cut_epoch_by_epoch() -> None:
    pair = Pair(epoch=9)
    for epoch, count in ((1, 2), (4, 2), (7, 2)):
        fill(pair.led.log, [count], epoch=epoch)
    for epoch, count in ((1, 2), (3, 1), (5, 1), (6, 5)):
        fill(pair.own.log, [count], epoch=epoch)
    pair.begin()
    ends = []
    while pair.own.log.latest_epoch != 1:
        pair.round()
        ends.append(pair.own.log.log_end_offset)
    assert [3, 2] == ends
    pair.round(3).assert_same()


def test_the_watermark_of_a_leader_that_sends_back_to_the_fork_is_not_taken() -> None:
    pair = Pair(epoch=9)
    fill(pair.led.log, [2], epoch=1)
    fill(pair.own.log, [3], epoch=1)
    requested = pair.begin().followed.start_cycle()
    assert not pair.followed.apply_responses(answers_of(pair.leader, 2, requested))
    assert 2 == pair.own.log.log_end_offset


def test_an_epoch_without_records_goes_too() -> None:
    pair = Pair(epoch=3)
    fill(pair.led.log, [2], epoch=0)
    fill(pair.own.log, [2], epoch=0)
    # It led epoch 2 for a moment, of which the next leader knows nothing.
    pair.own.log.epochs.assign(2, 2)
    pair.begin().round()
    assert (0, 2) == (pair.own.log.latest_epoch, pair.own.log.log_end_offset)
    pair.led.append(sent(1), 1)
    pair.round(2).assert_same()


def test_a_log_without_epochs_is_cut_to_its_watermark_first() -> None:
    pair = Pair()
    fill(pair.own.log, [2, 3])
    pair.own.log.epochs.clear()
    pair.own.high_watermark = 2
    pair.begin()
    assert 2 == pair.own.log.log_end_offset


def test_a_disk_that_fails_as_a_log_is_truncated_is_reported_and_the_partition_not_followed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pair = Pair()
    files, told = MemoryFiles(), list[LogDirOffline]()
    own = Partition(2, open_log(files)[0], pair.clock, is_alive=lambda _id: True)
    fill(own.log, [2, 3])
    own.log.epochs.clear()
    replicas = ReplicaManager(pair.clock, ports_of(offline=told))
    replicas.add(own)
    followed = FollowedPartitions(FollowerLogs(replicas), pair.clock, quota_of(pair.clock))
    own.become_follower(state((1, 2), epoch=5))
    files.fail("truncate", errno.EIO)
    followed.follow(PARTITION, 5)
    assert ({}, 1) == (followed.states, len(told))
    assert caplog.messages[-1].startswith(f"{PARTITION} is fetched no more in this epoch: ")


def test_what_was_asked_is_not_all_that_is_followed_once_a_partition_goes() -> None:
    pair = Pair().begin()
    pair.followed.start_cycle()
    pair.followed.remove(OTHER)
    assert pair.followed.is_as_requested
    pair.followed.remove(PARTITION)
    assert not pair.followed.is_as_requested


def test_below_the_leaders_start_all_goes() -> None:
    pair = Pair()
    fill(pair.led.log, [2, 2, 2])
    pair.led.high_watermark = 6
    pair.begin()
    pair.led.delete_records_before(4)
    pair.round()
    assert (4, 4, 4) == (
        pair.own.log.log_start_offset,
        pair.own.log.log_end_offset,
        pair.own.high_watermark,
    )
    pair.round(2).assert_same()


def test_a_start_inside_a_batch_brings_the_batch_whole() -> None:
    pair = Pair()
    fill(pair.led.log, [6])
    pair.led.high_watermark = 6
    pair.begin()
    pair.led.delete_records_before(4)
    pair.round(3)
    assert (4, 6) == (pair.own.log.log_start_offset, pair.own.log.log_end_offset)
    pair.assert_same()


@pytest.mark.parametrize(
    ("ends", "end"), [(LeaderEnds(0, 0, 1), 1), (LeaderEnds(0, 0, 3), 2), (LeaderEnds(0, 0, 2), 2)]
)
def test_above_the_leaders_end_it_is_cut_to_that_or_goes_on(
    ends: LeaderEnds, end: int, caplog: pytest.LogCaptureFixture
) -> None:
    pair = Pair()
    fill(pair.own.log, [1, 1])
    pair.begin().answer(OFFSET_OUT_OF_RANGE)
    assert {} == pair.followed.start_cycle()
    requested = pair.followed.requested_ends()
    assert {PARTITION: 5} == requested
    pair.followed.apply_leader_ends(requested, {PARTITION: ends})
    assert end == pair.own.log.log_end_offset
    assert end == pair.followed.start_cycle()[PARTITION].fetch_offset
    leader_range = f"its leader's range {ends.start_offset} to {ends.end_offset}"
    assert f"{PARTITION} ends at 2, out of {leader_range}" == caplog.messages[0]


def test_ends_that_come_late_are_passed_over() -> None:
    pair = Pair()
    fill(pair.own.log, [1, 1])
    requested = pair.begin().answer(OFFSET_OUT_OF_RANGE).followed.requested_ends()
    pair.followed.apply_leader_ends(requested, {PARTITION: LeaderEnds(0, 0, 2)})
    shorter = {PARTITION: LeaderEnds(0, 0, 1)}
    pair.followed.apply_leader_ends(requested, shorter)
    pair.own.become_follower(state((1, 2), epoch=6))
    pair.followed.follow(PARTITION, 6)
    pair.answer(OFFSET_OUT_OF_RANGE).followed.apply_leader_ends(requested, shorter)
    assert 2 == pair.own.log.log_end_offset
    assert FetchPhase.TRUNCATING is pair.followed.states[PARTITION].phase
    pair.followed.remove(PARTITION)
    pair.followed.apply_leader_ends({PARTITION: 6}, shorter)
    assert ({}, 2) == (pair.followed.states, pair.own.log.log_end_offset)


def test_ends_for_a_replica_that_is_here_no_more_drop_the_partition() -> None:
    pair = Pair().begin().answer(OFFSET_OUT_OF_RANGE)
    pair.replicas.remove(PARTITION)
    pair.followed.apply_leader_ends(
        pair.followed.requested_ends(), {PARTITION: LeaderEnds(0, 0, 1)}
    )
    assert {} == pair.followed.states


def test_partitions_whose_leader_gave_no_answer_rest() -> None:
    pair = Pair().begin()
    pair.followed.unreached([OTHER, PARTITION])
    assert {} == pair.followed.start_cycle()
    pair.clock.advance(BACKOFF_MS)
    assert [PARTITION] == list(pair.followed.start_cycle())


def test_an_answer_that_was_not_requested_is_passed_over() -> None:
    pair = Pair().begin()
    assert not pair.followed.apply_responses(
        [(PARTITION, PartitionResponse(0, 7, 0, bytes(sent(3))))]
    )
    assert 0 == pair.own.log.log_end_offset
    assert pair.followed.apply_responses([(OTHER, PartitionResponse(0))]), "nobody follows it"


def test_an_error_for_the_ends_rests_and_asks_again() -> None:
    pair = Pair().begin().answer(OFFSET_OUT_OF_RANGE)
    pair.followed.apply_leader_ends(pair.followed.requested_ends(), {})
    assert {} == pair.followed.requested_ends()
    pair.clock.advance(BACKOFF_MS)
    requested = pair.followed.requested_ends()
    pair.followed.apply_leader_ends(requested, {PARTITION: LeaderEnds(NOT_LEADER_OR_FOLLOWER)})
    assert FetchPhase.TRUNCATING is pair.followed.states[PARTITION].phase
    pair.clock.advance(BACKOFF_MS)
    pair.followed.apply_leader_ends(
        pair.followed.requested_ends(), {PARTITION: LeaderEnds(FENCED_LEADER_EPOCH)}
    )
    assert {} == pair.followed.states


@pytest.mark.parametrize("code", [UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER, 56, 3])
def test_a_partition_with_an_error_rests_and_holds_up_no_other(
    code: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    pair = Pair().begin()
    other = Partition(2, log_of(OTHER), pair.clock, is_alive=lambda _id: True)
    other.become_follower(state((1, 2), epoch=5))
    pair.replicas.add(other)
    pair.followed.follow(OTHER, 5)
    pair.answer(code)
    reason = kafka_error(code).name
    assert [f"{PARTITION} is not fetched for a while: {reason}"] == caplog.messages
    assert [OTHER] == list(pair.followed.start_cycle())
    assert pair.clock.monotonic_ms() + BACKOFF_MS == pair.followed.next_due_ms()
    pair.clock.advance(BACKOFF_MS)
    assert {PARTITION, OTHER} == set(pair.followed.start_cycle())


def test_a_fenced_partition_is_dropped_until_the_next_order(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    pair = Pair().begin().answer(FENCED_LEADER_EPOCH)
    assert {} == pair.followed.states
    assert [f"{PARTITION} is fetched no more in epoch 5: there is a newer one"] == caplog.messages
    pair.own.become_follower(state((1, 2), epoch=6))
    pair.followed.follow(PARTITION, 6)
    assert 6 == pair.followed.start_cycle()[PARTITION].current_leader_epoch


def test_an_answer_to_an_earlier_epoch_or_offset_is_passed_over() -> None:
    pair = Pair().begin()
    pair.followed.start_cycle()
    late = [(PARTITION, PartitionResponse(0, 7, 0, bytes(sent(3))))]
    pair.own.become_follower(state((1, 2), epoch=6))
    pair.followed.follow(PARTITION, 6)
    assert not pair.followed.apply_responses(late)
    assert 0 == pair.own.log.log_end_offset
    refusal = [(PARTITION, PartitionResponse(FENCED_LEADER_EPOCH))]
    assert pair.followed.apply_responses(refusal), "a late error tells nothing that has to be known"
    pair.followed.start_cycle()
    assert pair.followed.apply_responses(late)
    assert 3 == pair.own.log.log_end_offset
    pair.followed.apply_responses(late)
    assert 3 == pair.followed.states[PARTITION].fetch_offset
    pair.followed.start_cycle()
    pair.followed.apply_responses([(OTHER, PartitionResponse(0))])


def test_records_that_a_leader_sends_during_a_fetch_cycle_are_appended() -> None:
    pair = Pair().begin()
    spec = pair.followed.start_cycle()[PARTITION]
    given = PartitionResponse(0, 1, 0, bytes(sent(3)))
    behind, next_epoch = spec._replace(fetch_offset=1), spec._replace(current_leader_epoch=6)
    assert not pair.followed.append_given(PARTITION, given, behind)
    assert not pair.followed.append_given(PARTITION, given, next_epoch)
    assert pair.followed.append_given(PARTITION, given, spec)
    assert (3, 1) == (pair.own.log.log_end_offset, pair.own.high_watermark)
    assert not pair.followed.append_given(PARTITION, given), "it is not asked for yet"
    assert not pair.followed.append_given(OTHER, given)
    following = pair.followed.request_on(PARTITION)
    assert 3 == following.fetch_offset
    assert pair.followed.awaits(PARTITION)
    assert not pair.followed.append_given(PARTITION, given, spec)
    assert not pair.followed.awaits(OTHER)
    assert {PARTITION: following} == pair.followed.start_cycle()
    assert 3 == pair.own.log.log_end_offset


def test_a_request_names_those_that_have_moved_since_the_one_before() -> None:
    pair = Pair().begin()
    pair.led.append(sent(2), 1)
    for moved, start in (({PARTITION}, 0), ({PARTITION}, 0), (set(), 0), ({PARTITION}, 1)):
        reason = LogStartReason.LEADER_START
        pair.own.log.maybe_increment_log_start_offset(start, 2, reason)
        requested = pair.followed.start_cycle()
        assert moved == pair.followed.moved
        assert start == requested[PARTITION].log_start_offset
        pair.followed.apply_responses(answers_of(pair.leader, 2, requested))
    pair.followed.unreached([PARTITION])
    pair.clock.advance(BACKOFF_MS)
    assert [PARTITION] == list(pair.followed.start_cycle())
    assert set() == pair.followed.moved


def test_what_lags_is_left_out_while_a_throttle_holds_it_back() -> None:
    pair = Pair()
    quota = quota_of(pair.clock, [PARTITION], 1)
    pair.followed = FollowedPartitions(FollowerLogs(pair.replicas), pair.clock, quota)
    pair.begin()
    assert pair.followed.next_due_ms() is None
    given = PartitionResponse(0, 9, 0, bytes(sent(3)))
    pair.followed.start_cycle()
    assert pair.followed.apply_responses([(PARTITION, given)])
    assert {} == pair.followed.start_cycle()
    assert pair.clock.monotonic_ms() + BACKOFF_MS == pair.followed.next_due_ms()
    pair.clock.advance(11_000)
    assert [PARTITION] == list(pair.followed.start_cycle())
    assert pair.followed.next_due_ms() is None


def test_a_delay_that_is_over_makes_nothing_due_while_a_throttle_holds_it_back() -> None:
    pair = Pair()
    quota = quota_of(pair.clock, [PARTITION], 1)
    pair.followed = FollowedPartitions(FollowerLogs(pair.replicas), pair.clock, quota)
    pair.begin().followed.start_cycle()
    assert pair.followed.apply_responses([(PARTITION, PartitionResponse(0, 9, 0, bytes(sent(3))))])
    pair.followed.unreached([PARTITION])
    pair.clock.advance(BACKOFF_MS)
    assert {} == pair.followed.start_cycle()
    assert pair.clock.monotonic_ms() + BACKOFF_MS == pair.followed.next_due_ms()


@pytest.mark.parametrize(
    ("watermark", "bound_per_s", "goes_on"), [(9, 1, False), (9, 1 << 20, True), (3, 1, True)]
)
def test_during_a_fetch_cycle_a_throttle_applies_to_lagging_followers_alone(
    watermark: int, bound_per_s: int, goes_on: bool
) -> None:
    pair = Pair()
    quota = quota_of(pair.clock, [PARTITION], bound_per_s)
    pair.followed = FollowedPartitions(FollowerLogs(pair.replicas), pair.clock, quota)
    assert [PARTITION] == list(pair.begin().followed.start_cycle())
    given = PartitionResponse(0, watermark, 0, bytes(sent(3)))
    assert goes_on is pair.followed.append_given(PARTITION, given)
    assert 3 == pair.own.log.log_end_offset


def test_a_replica_that_leads_now_is_changed_no_more() -> None:
    pair = Pair().begin()
    assert pair.followed.start_cycle()
    pair.own.become_leader(state((2,), replicas=(1, 2), leader=2, epoch=6))
    pair.followed.apply_responses([(PARTITION, PartitionResponse(0, 7, 0, bytes(sent(3))))])
    assert 0 == pair.own.log.log_end_offset
    assert {} == pair.followed.start_cycle()
    assert {} == pair.followed.states


def test_a_replica_that_is_here_no_more_is_changed_no_more() -> None:
    pair = Pair().begin()
    requested = pair.followed.start_cycle()
    assert requested
    pair.replicas.remove(PARTITION)
    assert {} == pair.followed.topic_ids([PARTITION])
    pair.followed.apply_responses([(PARTITION, PartitionResponse(0, 7, 0, bytes(sent(3))))])
    assert 0 == pair.own.log.log_end_offset
    assert {} == pair.followed.states
    pair.followed.follow(PARTITION, 5)
    assert {} == pair.followed.states


def test_a_log_has_the_id_of_its_topic() -> None:
    pair = Pair().begin()
    assert {} == pair.followed.topic_ids([PARTITION])
    pair.own.log.topic_id = uuid_text(bytes(15) + b"1")
    assert {PARTITION: bytes(15) + b"1"} == pair.followed.topic_ids([PARTITION])


def test_records_with_a_wrong_checksum_are_requested_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pair = Pair().begin()
    bad = bytearray(sent(1))
    bad[-1] ^= 1
    pair.followed.start_cycle()
    pair.followed.apply_responses([(PARTITION, PartitionResponse(0, 0, 0, bytes(bad)))])
    assert (0, {}) == (pair.own.log.log_end_offset, pair.followed.start_cycle())
    pair.clock.advance(BACKOFF_MS)
    assert 0 == pair.followed.start_cycle()[PARTITION].fetch_offset
    assert caplog.messages[0].startswith(f"what was fetched of {PARTITION} is refused: ")


@pytest.mark.parametrize("first_epoch", [5, 6])
def test_a_follower_backs_off_from_a_batch_of_an_epoch_after_its_leaders(first_epoch: int) -> None:
    pair = Pair()
    first, later = sent(2), sent(1, base_offset=2)
    BatchView(first).patch(leader_epoch=first_epoch)
    BatchView(later).patch(leader_epoch=6)
    if first_epoch == 6:
        # Its log has records of that epoch already.
        pair.own.log.append_as_follower(first, 0)
        pair.begin()
    else:
        pair.begin().followed.start_cycle()
        pair.followed.apply_responses(
            [(PARTITION, PartitionResponse(0, 3, 0, bytes(first) + bytes(later)))]
        )
    assert 2 == pair.followed.start_cycle()[PARTITION].fetch_offset
    pair.followed.apply_responses([(PARTITION, PartitionResponse(0, 3, 0, bytes(later)))])
    assert (2, {}) == (pair.own.log.log_end_offset, pair.followed.start_cycle())
    pair.clock.advance(BACKOFF_MS)
    assert 2 == pair.followed.start_cycle()[PARTITION].fetch_offset


def test_records_that_cannot_follow_drop_the_partition(caplog: pytest.LogCaptureFixture) -> None:
    pair = Pair()
    fill(pair.own.log, [3])
    pair.begin()
    answer = PartitionResponse(0, 0, 0, bytes(sent(1)))
    pair.followed.start_cycle()
    pair.followed.apply_responses([(PARTITION, answer)])
    assert {} == pair.followed.states
    assert caplog.messages[0].startswith(f"{PARTITION} is fetched no more in this epoch: ")
    assert 3 == pair.own.log.log_end_offset


def test_a_full_answer_puts_a_partition_behind_the_others() -> None:
    pair = Pair().begin()
    other = Partition(2, log_of(OTHER), pair.clock, is_alive=lambda _id: True)
    other.become_follower(state((1, 2), epoch=5))
    pair.replicas.add(other)
    pair.followed.follow(OTHER, 5)
    pair.led.append(sent(2), 1)
    requested = {PARTITION: pair.followed.start_cycle()[PARTITION]}
    pair.followed.apply_responses(answers_of(pair.leader, 2, requested))
    assert [OTHER, PARTITION] == list(pair.followed.start_cycle())


def test_limits_are_those_of_the_settings() -> None:
    pair = Pair()
    config = ReplicaFetcherConfig(partition_max_bytes=77)
    pair.followed = FollowedPartitions(
        FollowerLogs(pair.replicas), pair.clock, quota_of(pair.clock), config
    )
    assert 77 == pair.begin().followed.start_cycle()[PARTITION].max_bytes


# Epochs whose first batches are cleaned away

#: Where epoch 2 ended at the leader of `cleaned`; what is left of epoch 5 begins at 9.
EPOCH_END = 5
GAP = EpochGap(2, 5, 4, 9)


def cleaned(epoch: int = 6) -> Pair:
    """Return a pair whose leader has cleaned away 4, of epoch 2, and 5 to 8, of epoch 5."""
    pair = Pair(epoch)
    fill(pair.led.log, [4], epoch=2)
    pair.led.log.epochs.assign(5, EPOCH_END)
    pair.led.log.append_as_follower(sent(base_offset=9, leader_epoch=5), 0)
    return pair.begin()


def fetched_once(pair: Pair) -> Pair:
    requested = pair.followed.start_cycle()
    assert pair.followed.apply_responses(answers_of(pair.leader, 2, requested))
    return pair


def test_an_epoch_behind_a_gap_starts_where_its_leader_says() -> None:
    pair = fetched_once(cleaned())
    assert FetchPhase.FETCHING_EPOCH is pair.followed.states[PARTITION].phase
    assert not pair.followed.is_as_requested
    assert {} == pair.followed.start_cycle(), "the leader does not hear of the records yet"
    assert {} == pair.followed.requested_ends()
    requested = pair.followed.requested_epoch_ends()
    assert {PARTITION: EpochRequest(6, GAP)} == requested
    assert ((2, 0), (5, 4)) == pair.own.log.epochs.entries, "from where the log ended, until then"
    pair.followed.apply_epoch_ends(requested, epochs_of(pair.leader, requested))
    assert ((2, 0), (5, EPOCH_END)) == pair.own.log.epochs.entries
    assert 10 == pair.followed.start_cycle()[PARTITION].fetch_offset
    pair.round(2).assert_same()


def test_who_wrote_alone_in_the_epoch_before_loses_it_though_the_gap_is_longer() -> None:
    pair = cleaned().round(3)
    pair.own.become_leader(state((1, 2), leader=2, replicas=(1, 2), epoch=7))
    former = FetchSpec(8, 1 << 20, current_leader_epoch=7, last_fetched_epoch=2)
    assert EpochEnd(2, EPOCH_END) == pair.own.find_divergence(former)


def test_who_wrote_alone_loses_it_though_the_gap_begins_the_log() -> None:
    pair = Pair(6)
    log = pair.led.log
    for epoch, start_offset in ((2, 0), (5, EPOCH_END)):
        log.epochs.assign(epoch, start_offset)
    log.append_as_follower(sent(base_offset=9, leader_epoch=5), 0)
    fetched_once(pair.begin())
    assert ((5, 0),) == pair.own.log.epochs.entries, "from the log's start, until the answer"
    requested = pair.followed.requested_epoch_ends()
    assert {PARTITION: EpochRequest(6, EpochGap(4, 5, 0, 9, is_first=True))} == requested
    pair.followed.apply_epoch_ends(requested, epochs_of(pair.leader, requested))
    assert ((5, EPOCH_END),) == pair.own.log.epochs.entries
    assert 10 == pair.followed.start_cycle()[PARTITION].fetch_offset
    pair.round(2)
    pair.own.become_leader(state((1, 2), leader=2, replicas=(1, 2), epoch=7))
    former = FetchSpec(8, 1 << 20, current_leader_epoch=7, last_fetched_epoch=3)
    assert EpochEnd(3, EPOCH_END) == pair.own.find_divergence(former)


def test_each_epoch_behind_a_gap_is_requested() -> None:
    pair = cleaned()
    log = pair.led.log
    log.epochs.assign(6, 12)
    log.append_as_follower(sent(base_offset=14, leader_epoch=6), 0)
    fetched_once(pair)
    before = []
    while requested := pair.followed.requested_epoch_ends():
        before.append(requested[PARTITION].gap.epoch_before)
        pair.followed.apply_epoch_ends(requested, epochs_of(pair.leader, requested))
    assert [2, 5] == before
    assert log.epochs.entries == pair.own.log.epochs.entries
    assert 15 == pair.followed.start_cycle()[PARTITION].fetch_offset


def test_of_a_leader_that_does_not_know_the_epoch_before_nothing_is_taken() -> None:
    pair = fetched_once(cleaned())
    requested = pair.followed.requested_epoch_ends()
    pair.followed.apply_epoch_ends(requested, {PARTITION: EpochAnswer(0, 1, 8)})
    assert ((2, 0), (5, 4)) == pair.own.log.epochs.entries
    assert {} == pair.followed.requested_epoch_ends()
    assert 10 == pair.followed.start_cycle()[PARTITION].fetch_offset


def test_an_error_for_an_epoch_rests_and_asks_again() -> None:
    pair = fetched_once(cleaned())
    pair.followed.apply_epoch_ends(pair.followed.requested_epoch_ends(), {})
    assert {} == pair.followed.requested_epoch_ends()
    pair.clock.advance(BACKOFF_MS)
    requested = pair.followed.requested_epoch_ends()
    pair.followed.apply_epoch_ends(requested, {PARTITION: EpochAnswer(NOT_LEADER_OR_FOLLOWER)})
    assert FetchPhase.FETCHING_EPOCH is pair.followed.states[PARTITION].phase
    pair.clock.advance(BACKOFF_MS)
    requested = pair.followed.requested_epoch_ends()
    pair.followed.apply_epoch_ends(requested, {PARTITION: EpochAnswer(FENCED_LEADER_EPOCH)})
    assert {} == pair.followed.states


def test_an_epoch_without_a_response_is_requested_in_the_next_leader_epoch() -> None:
    pair = fetched_once(cleaned())
    late = pair.followed.requested_epoch_ends()
    for partition in (pair.led, pair.own):
        order = state((1, 2), replicas=(1, 2), epoch=7, partition_epoch=1)
        become = partition.become_leader if partition.is_leader else partition.become_follower
        become(order)
    pair.followed.follow(PARTITION, 7)
    pair.followed.apply_epoch_ends(late, {PARTITION: EpochAnswer(0, 2, 7)})
    assert ((2, 0), (5, 4)) == pair.own.log.epochs.entries, "an answer that came late"
    assert {PARTITION: EpochRequest(7, GAP)} == pair.followed.requested_epoch_ends()
    pair.round()
    assert (5, EPOCH_END) == pair.own.log.epochs.entries[-1]


def test_answers_for_what_is_followed_no_more_are_passed_over() -> None:
    pair = fetched_once(cleaned())
    requested = pair.followed.requested_epoch_ends()
    answers = epochs_of(pair.leader, requested)
    pair.followed.apply_epoch_ends(requested, answers)
    pair.followed.apply_epoch_ends(requested, {PARTITION: EpochAnswer(0, 2, 7)})
    assert (5, EPOCH_END) == pair.own.log.epochs.entries[-1], "the second is passed over"
    pair.followed.remove(PARTITION)
    pair.followed.apply_epoch_ends(requested, answers)
    assert {} == pair.followed.states


def test_a_log_that_was_cut_meanwhile_has_nothing_to_ask_for() -> None:
    pair = fetched_once(cleaned())
    requested = pair.followed.requested_epoch_ends()
    pair.own.truncate_to(10)
    pair.followed.apply_epoch_ends(requested, epochs_of(pair.leader, requested))
    assert ((2, 0), (5, 4)) == pair.own.log.epochs.entries
    assert {} == pair.followed.requested_epoch_ends()
    assert 10 == pair.followed.start_cycle()[PARTITION].fetch_offset


def test_records_that_a_leader_sends_during_a_fetch_cycle_may_lead_to_a_question() -> None:
    pair = cleaned()
    requested = pair.followed.start_cycle()
    ((_, answer),) = answers_of(pair.leader, 2, requested)
    assert not pair.followed.append_given(PARTITION, answer)
    assert not pair.followed.is_as_requested
    assert [PARTITION] == list(pair.followed.requested_epoch_ends())
