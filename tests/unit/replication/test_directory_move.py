"""The steps of a log that is copied to another directory. Source: REPL-14."""

from __future__ import annotations

import pytest

from engine.limits import SENDFILE_BYTES_MIN
from engine.log.local_log import LocalLog
from engine.log.log_config import LogConfig
from engine.log.segment import Segment
from engine.replication.directory_move import CopyFrom, DirectoryMove, ReplaceLog, choose_step
from engine.replication.following.fetch_state import (
    LocalLogEnds,
    RestartAt,
    TruncateTo,
    TruncateToDivergence,
)
from engine.replication.partition import Partition
from engine.replication.partition_types import EpochEnd, FetchSpec
from tests.unit.log.writing import batches_of, fill, log_that_lost_its_end, new_log, sent, sent_by
from tests.unit.replication.replicas import leader_of, state


@pytest.mark.parametrize(
    ("log", "future", "parted", "step"),
    [
        ((5, 20), (0, 4), None, RestartAt(5)),
        ((5, 20), (0, 5), None, CopyFrom(5)),
        ((0, 20), (0, 9), EpochEnd(1, 7), TruncateToDivergence(EpochEnd(1, 7))),
        ((0, 20), (0, 25), None, TruncateTo(20)),
        ((0, 20), (0, 19), None, CopyFrom(19)),
        ((0, 20), (0, 20), None, ReplaceLog()),
    ],
)
def test_each_pair_of_ends_has_its_step(
    log: tuple[int, int], future: tuple[int, int], parted: EpochEnd | None, step: object
) -> None:
    assert step == choose_step(LocalLogEnds(*log, 0), LocalLogEnds(*future, 0), parted)


def test_a_future_log_catches_up_with_one_that_is_cut_and_written_again() -> None:
    partition, future = leader_of(), new_log()
    move = DirectoryMove(partition, future)
    fill(partition.log, [1] * 10)
    while future.log_end_offset < 10:
        assert move.run_step(1 << 20, 0)
    partition.truncate_to(4)
    partition.become_leader(state(epoch=3))
    fill(partition.log, [1] * 3, epoch=3)
    steps = []
    while (copied := move.run_step(1 << 20, 0)) is not None:
        steps.append(copied > 0)
    assert [False, True] == steps
    assert partition.log.read(0, 1 << 20, 99).read() == future.read(0, 1 << 20, 99).read()
    assert (3, 7) == future.end_offset_for_epoch(3)


def test_a_log_whose_records_were_deleted_meanwhile_is_begun_again() -> None:
    partition, future = leader_of(), new_log()
    move = DirectoryMove(partition, future)
    fill(partition.log, [1] * 3)
    move.run_step(1 << 20, 0)
    fill(partition.log, [1] * 6)
    partition.high_watermark = 9
    partition.delete_records_before(7)
    assert 0 == move.run_step(1 << 20, 0)
    assert (7, 7) == (future.log_start_offset, future.log_end_offset)
    while move.run_step(1 << 20, 0) is not None:
        pass
    assert (7, 9) == (future.log_start_offset, future.log_end_offset)


def test_a_copy_keeps_no_file_open(monkeypatch: pytest.MonkeyPatch) -> None:
    borrowed: list[int] = []
    noted: list[int] = []

    def borrow(_segment: Segment) -> None:
        borrowed.append(1)
        noted.append(1)

    monkeypatch.setattr(Segment, "borrow", borrow)
    monkeypatch.setattr(Segment, "give_back", lambda _segment: borrowed.pop())
    partition = leader_of(log_config=LogConfig())
    partition.append(sent(value=b"v" * SENDFILE_BYTES_MIN), 1)
    assert SENDFILE_BYTES_MIN < (DirectoryMove(partition, new_log()).run_step(1 << 20, 0) or 0)
    assert [1] == noted
    assert [] == borrowed


def test_a_start_that_rises_during_the_copy_is_followed() -> None:
    partition, future = leader_of(), new_log()
    move = DirectoryMove(partition, future)
    fill(partition.log, [1] * 8)
    partition.high_watermark = 8
    partition.delete_records_before(2)
    future.restart_at(0, 0)
    assert 0 == move.run_step(1 << 20, 0)
    while move.run_step(1, 0) is not None:
        partition.delete_records_before(min(5, future.log_end_offset))
    assert (5, 8) == (future.log_start_offset, future.log_end_offset)


def test_a_future_log_that_parted_below_the_fork_loses_all_that_is_its_own() -> None:
    partition, future = leader_of(), new_log()
    fill(partition.log, [1] * 4, epoch=1)
    fill(partition.log, [1] * 2, epoch=4)
    fill(future, [1] * 2, epoch=1)
    fill(future, [1] * 4, epoch=3)
    move = DirectoryMove(partition, future)
    assert 0 == move.run_step(1 << 20, 0)
    assert (2, 1) == (future.log_end_offset, future.latest_epoch)
    assert 0 < (move.run_step(1 << 20, 0) or 0)
    assert batches_of(partition.log) == batches_of(future)


def test_a_longer_future_log_without_epochs_is_cut_to_the_logs_end() -> None:
    partition, future = leader_of(), new_log()
    fill(partition.log, [1] * 4)
    fill(future, [1] * 6)
    future.epochs.clear()
    move = DirectoryMove(partition, future)
    assert 0 == move.run_step(1 << 20, 0)
    assert 4 == future.log_end_offset
    assert move.run_step(1 << 20, 0) is None


def test_a_future_log_that_ends_where_the_log_begins_may_have_parted_too() -> None:
    partition, future = leader_of(), new_log()
    fill(partition.log, [1] * 6, epoch=1)
    partition.high_watermark = 6
    partition.delete_records_before(5)
    fill(future, [1] * 5, epoch=7)
    assert 0 == DirectoryMove(partition, future).run_step(1 << 20, 0)
    assert (5, 5, None) == (future.log_start_offset, future.log_end_offset, future.latest_epoch)


def test_an_epoch_whose_first_batches_are_cleaned_away_starts_where_it_does_in_the_log() -> None:
    partition, future = leader_of(), new_log()
    log = partition.log
    fill(log, [4], epoch=2)
    log.epochs.assign(5, 6)
    log.append_as_follower(sent(base_offset=9, leader_epoch=5), 0)
    move = DirectoryMove(partition, future)
    while move.run_step(1 << 20, 0) is not None:
        pass
    assert log.epochs.entries == future.epochs.entries
    assert (2, 6) == future.end_offset_for_epoch(2)


def moved(partition: Partition) -> LocalLog:
    """Return the log that takes the place of a partition's."""
    future = new_log()
    move = DirectoryMove(partition, future)
    for _ in range(20):
        if move.run_step(1 << 20, 0) is None:
            return future
    pytest.fail("the move has no end")


@pytest.mark.parametrize("count", [0, 2])
def test_a_log_that_ends_behind_offsets_without_records_is_moved_with_its_end(count: int) -> None:
    partition = leader_of(log=log_that_lost_its_end(count, 10))
    before = batches_of(partition.log)
    partition.log = moved(partition)
    assert (0, 10) == (partition.log.log_start_offset, partition.log.log_end_offset)
    assert before == batches_of(partition.log)
    assert 10 == partition.append(sent(), 1).info.first_offset
    assert 0 < partition.log.read(count, 1 << 20).size_bytes


def test_epochs_without_records_are_known_where_the_end_rises_behind_the_records() -> None:
    partition = leader_of(log=log_that_lost_its_end(2, 10))
    partition.log.epochs.assign(3, 5)
    entries = partition.log.epochs.entries
    partition.log = moved(partition)
    assert (10, entries) == (partition.log.log_end_offset, partition.log.epochs.entries)


def test_a_leader_all_of_whose_records_are_deleted_knows_its_epoch_after_the_move() -> None:
    partition = leader_of()
    fill(partition.log, [1] * 3, epoch=partition.leader_epoch)
    partition.high_watermark = 3
    partition.delete_records_before(3)
    entries = partition.log.epochs.entries
    assert entries
    partition.log = moved(partition)
    assert entries == partition.log.epochs.entries
    follower = FetchSpec(3, 1 << 20, last_fetched_epoch=partition.leader_epoch)
    assert partition.find_divergence(follower) is None


def test_a_leader_that_has_written_nothing_knows_its_epoch_after_the_move() -> None:
    partition = leader_of()
    fill(partition.log, [1] * 3, epoch=partition.leader_epoch)
    epoch = partition.leader_epoch
    partition.become_leader(state(epoch=epoch + 2))
    partition.log = moved(partition)
    # A follower that wrote alone in the epoch between is told where to cut.
    alone = FetchSpec(5, 1 << 20, last_fetched_epoch=epoch + 1)
    assert EpochEnd(epoch, 3) == partition.find_divergence(alone)


def test_records_that_are_deleted_as_the_copy_is_whole_stay_deleted() -> None:
    partition, future = leader_of(), new_log()
    move = DirectoryMove(partition, future)
    fill(partition.log, [1] * 3)
    partition.high_watermark = 3
    while future.log_end_offset < 3:
        move.run_step(1 << 20, 0)
    partition.delete_records_before(2)
    assert move.run_step(1 << 20, 0) is None
    assert (2, 3) == (future.log_start_offset, future.log_end_offset)


def test_a_repeated_batch_is_known_after_the_move_though_its_records_are_deleted() -> None:
    partition = leader_of()
    written = partition.append(sent_by(7, 0, 3), 1).info
    partition.high_watermark = 3
    partition.delete_records_before(3)
    partition.log = moved(partition)
    again = partition.append(sent_by(7, 0, 3), 1).info
    assert again.is_duplicate
    assert written.last_offset == again.last_offset


def test_a_copy_that_lost_its_topic_id_has_it_as_it_takes_the_logs_place() -> None:
    partition = leader_of()
    partition.log.assign_topic_id("0qDMg_OyT2KjEleQvYIdkQ")
    fill(partition.log, [1] * 3)
    assert "0qDMg_OyT2KjEleQvYIdkQ" == moved(partition).topic_id


def test_a_copy_whose_batches_say_all_of_its_producers_has_no_snapshot() -> None:
    partition = leader_of()
    partition.append(sent_by(7, 0), 1)
    log = moved(partition)
    assert log.producers.producers.keys() == {7}
    assert log.snapshots.latest_offset() is None
