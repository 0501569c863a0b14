"""Offsets that are committed in a transaction: pending until its marker, on every coordinator."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.errors import EngineError, api_error
from engine.groups.group_offsets import CommittedOffset
from engine.groups.ports import CommittingProducer, LoadedRecords
from engine.groups.requests import MemberRequest
from engine.kafka_errors import NOT_LEADER_OR_FOLLOWER
from engine.limits import COORDINATOR_LOAD_RETRY_MS
from engine.model import TopicPartition
from engine.naming import coordinator_partition
from tests.unit.groups.stage import COUNT, MemoryLog, Stage, loaded_record

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
P = CommittingProducer(7, 0)
PARTITION = coordinator_partition("g", COUNT)
NOBODY = MemberRequest("g", -1, "", None)


def commit(
    stage: Stage,
    offsets: dict[TopicPartition, int],
    *,
    producer: CommittingProducer = P,
    member: MemberRequest = NOBODY,
) -> list[int]:
    rows = {key: CommittedOffset(offset, commit_ms=1) for key, offset in offsets.items()}
    commits = stage.coordinator.commits
    return list(commits.commit_in_transaction(member, producer, rows).result().values())


def commit_later(stage: Stage) -> None:
    """Commit without a wait for the response."""
    stage.coordinator.commits.commit_in_transaction(NOBODY, P, {T0: CommittedOffset(5)})


def end(stage: Stage, *, is_commit: bool, producer_id: int = 7, partition: int = PARTITION) -> None:
    commits = stage.coordinator.commits
    commits.complete_transaction(producer_id, {partition}, is_commit=is_commit)


def seen(stage: Stage, *keys: TopicPartition) -> list[tuple[int, bool]]:
    """Return each offset, and whether it is undecided."""
    commits = stage.coordinator.commits
    _, found = commits.fetch("g", keys)
    unstable = commits.unstable_partitions("g", keys)
    return [(found[key].offset, key in unstable) for key in keys]


def test_a_commit_counts_once_its_transaction_is_committed() -> None:
    stage = Stage()
    assert [0, 0] == commit(stage, {T0: 5, T1: 6})
    assert [(-1, True), (-1, True)] == seen(stage, T0, T1)
    end(stage, is_commit=True)
    assert [(5, False), (6, False)] == seen(stage, T0, T1)


def test_an_aborted_commit_is_forgotten() -> None:
    stage = Stage()
    commit(stage, {T0: 5})
    end(stage, is_commit=True)
    commit(stage, {T0: 9})
    assert [(5, True)] == seen(stage, T0)
    end(stage, is_commit=False)
    assert [(5, False)] == seen(stage, T0)


def test_only_the_marker_of_its_producer_and_partition_decides() -> None:
    stage = Stage()
    commit(stage, {T0: 5})
    end(stage, is_commit=True, producer_id=8)
    end(stage, is_commit=True, partition=(PARTITION + 1) % COUNT)
    assert [(-1, True)] == seen(stage, T0)


def test_nothing_is_kept_of_a_producer_whose_commits_are_decided() -> None:
    stage = Stage()
    held = stage.coordinator.registry._open
    commit(stage, {T0: 5})
    assert {7: {"g"}} == held
    end(stage, is_commit=True)
    assert {} == held
    stage.log.error_code = 6
    commit(stage, {T0: 5})
    assert {} == held


@pytest.mark.parametrize("is_held", [True, False])
def test_nothing_is_kept_of_producers_whose_group_goes_before_they_end(*, is_held: bool) -> None:
    stage = Stage()
    registry = stage.coordinator.registry
    stage.log.is_held = is_held
    commit_later(stage)
    assert {7: {"g"}} == registry._open
    stage.coordinator.admin.delete(["g"])
    stage.log.release()
    assert {} == registry._open
    stage.log.is_held = is_held
    commit_later(stage)
    registry.on_resigned(PARTITION)
    stage.log.release()
    assert {} == registry._open


def test_a_commit_that_fails_in_a_deleted_group_ends_nothing_of_the_next_of_its_name() -> None:
    stage = Stage()
    stage.log.is_held = True
    commit_later(stage)
    stage.coordinator.admin.delete(["g"])
    stage.log.is_held = False
    commit(stage, {T0: 6})
    stage.log.release(7)
    end(stage, is_commit=True)
    assert [(6, False)] == seen(stage, T0)


def test_two_transactions_are_decided_apart() -> None:
    stage = Stage()
    commit(stage, {T0: 5})
    commit(stage, {T0: 8, T1: 8}, producer=CommittingProducer(9, 0))
    end(stage, is_commit=True)
    assert [(5, True), (-1, True)] == seen(stage, T0, T1)
    end(stage, is_commit=True, producer_id=9)
    assert [(8, False), (8, False)] == seen(stage, T0, T1)


def test_a_transaction_that_is_committed_late_does_not_undo_a_later_commit() -> None:
    stage = Stage()
    commit(stage, {T0: 5})
    rows = {T0: CommittedOffset(9, commit_ms=1)}
    assert {T0: 0} == stage.coordinator.commits.commit(NOBODY, rows).result()
    end(stage, is_commit=True)
    assert [(9, False)] == seen(stage, T0)


def test_of_one_transaction_the_last_commit_counts() -> None:
    stage = Stage()
    commit(stage, {T0: 5})
    commit(stage, {T0: 6})
    end(stage, is_commit=True)
    assert [(6, False)] == seen(stage, T0)


def test_a_commit_that_is_on_its_way_is_undecided_too() -> None:
    stage = Stage()
    stage.log.is_held = True
    written = stage.coordinator.commits.commit(NOBODY, {T0: CommittedOffset(9, commit_ms=1)})
    assert [(-1, True)] == seen(stage, T0)
    stage.log.release()
    assert {T0: 0} == written.result()
    assert [(9, False)] == seen(stage, T0)


def test_a_commit_that_was_not_written_is_not_pending() -> None:
    stage = Stage()
    stage.log.error_code = 6
    assert [16] == commit(stage, {T0: 5})
    assert [(-1, False)] == seen(stage, T0)
    end(stage, is_commit=True)
    assert [(-1, False)] == seen(stage, T0)


def test_a_failure_leaves_an_earlier_commit_of_the_transaction() -> None:
    stage = Stage()
    commit(stage, {T0: 5})
    stage.log.is_held = True
    rows = {T1: CommittedOffset(9, commit_ms=1)}
    failed = stage.coordinator.commits.commit_in_transaction(NOBODY, P, rows)
    stage.log.release(6)
    assert {T1: 16} == failed.result()
    assert [(-1, True), (-1, False)] == seen(stage, T0, T1)
    end(stage, is_commit=True)
    assert [(5, False)] == seen(stage, T0)


@pytest.mark.parametrize("others", [(), (T1,)])
def test_the_failure_of_a_commit_that_is_known_no_more_changes_nothing(
    others: tuple[TopicPartition, ...],
) -> None:
    stage = Stage()
    stage.log.is_held = True
    commits = stage.coordinator.commits
    failed = [commits.commit_in_transaction(NOBODY, P, {T0: CommittedOffset(5)}) for _ in range(2)]
    stage.log.is_held = False
    commit(stage, dict.fromkeys(others, 6))
    # The first of two alike takes both away.
    stage.log.release(6)
    assert [{T0: 16}] * 2 == [codes.result() for codes in failed]
    assert [(-1, False), (-1, bool(others))] == seen(stage, T0, T1)
    end(stage, is_commit=True)
    assert [-1, 6 if others else -1] == [offset for offset, _ in seen(stage, T0, T1)]


def test_a_marker_that_overtakes_the_answer_leaves_the_commit_out() -> None:
    stage = Stage()
    stage.log.is_held = True
    rows = {T0: CommittedOffset(9, commit_ms=1)}
    stage.coordinator.commits.commit_in_transaction(NOBODY, P, rows)
    end(stage, is_commit=False)
    stage.log.release()
    assert [(-1, False)] == seen(stage, T0)


def test_records_are_those_of_the_producer() -> None:
    stage = Stage()
    commit(stage, {T0: 5}, producer=CommittingProducer(3, 4))
    assert [CommittingProducer(3, 4)] == stage.log.producers
    assert [0] == stage.log.base_sequences


def test_a_long_note_is_refused_alone() -> None:
    stage = Stage()
    rows = {T0: CommittedOffset(5, metadata="x" * 4097), T1: CommittedOffset(6)}
    commits = stage.coordinator.commits
    assert {T0: 12, T1: 0} == commits.commit_in_transaction(NOBODY, P, rows).result()
    rows = {T0: CommittedOffset(5, metadata="x" * 4097)}
    assert {T0: 12} == commits.commit_in_transaction(NOBODY, P, rows).result()


# Members


def test_without_member_and_generation_any_state_will_do() -> None:
    stage = Stage()
    (leader,) = stage.stable()
    assert [0] == commit(stage, {T0: 1})
    generation = leader.generation_id
    good = MemberRequest("g", generation, leader.member_id, None)
    assert [0] == commit(stage, {T0: 1}, member=good)
    assert [22] == commit(stage, {T0: 1}, member=good._replace(generation_id=generation + 1))
    assert [22] == commit(stage, {T0: 1}, member=good._replace(generation_id=-1))
    assert [25] == commit(stage, {T0: 1}, member=good._replace(member_id="other"))
    assert [25] == commit(stage, {T0: 1}, member=MemberRequest("g", -1, "", "static"))


def test_a_group_without_members_takes_them_without_a_generation() -> None:
    stage = Stage()
    assert [0] == commit(stage, {T0: 1}, member=MemberRequest("g", -1, "m", None))
    for generation_id in (0, 3):
        member = MemberRequest("g", generation_id, "m", None)
        assert [25] == commit(stage, {T0: 1}, member=member)


def test_a_group_of_another_broker_is_refused() -> None:
    stage = Stage()
    stage.coordinator.registry.on_resigned(PARTITION)
    assert [16] == commit(stage, {T0: 1})
    assert [24] == commit(stage, {T0: 1}, member=MemberRequest("", -1, "", None))


def test_a_commit_is_no_contact_with_the_member() -> None:
    stage = Stage()
    (leader,) = stage.stable()
    good = MemberRequest("g", leader.generation_id, leader.member_id, None)
    stage.pass_ms(9_000)
    assert [0] == commit(stage, {T0: 1}, member=good)
    stage.pass_ms(1_500)
    assert "Empty" == stage.state


# What becomes of groups


def test_a_group_with_undecided_commits_alone_is_kept() -> None:
    stage = Stage()
    commit(stage, {T0: 5})
    for _ in stage.coordinator.admin.expire_groups():
        pass
    assert "g" in stage.coordinator.registry.groups
    end(stage, is_commit=False)
    for _ in stage.coordinator.admin.expire_groups():
        pass
    assert "g" not in stage.coordinator.registry.groups


def test_a_marker_for_a_group_that_was_deleted_changes_nothing() -> None:
    stage = Stage()
    commit(stage, {T0: 5})
    assert {"g": 0} == stage.coordinator.admin.delete(["g"])
    end(stage, is_commit=True)
    assert {} == stage.coordinator.registry.groups
    assert {} == stage.coordinator.registry._open


# Loading


def loaded(*entries: LoadedRecords) -> Stage:
    class Log(MemoryLog):
        def read(self, partition: int):  # type: ignore[no-untyped-def]
            yield from entries if partition == PARTITION else ()

    return Stage(log=Log())


def records(stage: Stage) -> list[LoadedRecords]:
    found = enumerate(stage.log.partitions[PARTITION])
    return [loaded_record(offset, record) for offset, record in found]


@pytest.mark.parametrize("producer_id", [0, 7])
def test_an_open_transaction_is_pending_for_the_next_coordinator(producer_id: int) -> None:
    stage = Stage()
    commit(stage, {T0: 5})
    (pending,) = records(stage)
    other = loaded(pending._replace(open_producer_id=producer_id))
    assert [(-1, True)] == seen(other, T0)
    end(other, is_commit=True, producer_id=producer_id)
    assert [(5, False)] == seen(other, T0)


@pytest.mark.parametrize("is_commit", [True, False])
def test_beside_what_is_committed_already(is_commit: bool) -> None:
    stage = Stage()
    commit(stage, {T0: 5})
    commit(stage, {T0: 6})
    first, second = records(stage)
    other = loaded(first, second._replace(open_producer_id=7))
    assert [(5, True)] == seen(other, T0)
    end(other, is_commit=is_commit)
    assert [(6 if is_commit else 5, False)] == seen(other, T0)


class ReadLater(MemoryLog):
    """A log with some records, whose reading goes on in turns of the loop."""

    def __init__(self, *entries: LoadedRecords) -> None:
        super().__init__()
        self.entries = entries
        self.error: EngineError | None = None
        self.stage: Stage | None = None

    def read(self, partition: int) -> Iterator[LoadedRecords]:
        if self.stage is None or partition != PARTITION:
            return
        self.stage.clock.advance(100)
        yield from self.entries
        if self.error is not None:
            raise self.error


def loading(*entries: LoadedRecords) -> Stage:
    """Return a coordinator that is loading the group's partition."""
    log = ReadLater(*entries)
    stage = Stage(log=log)
    log.stage = stage
    registry = stage.coordinator.registry
    registry.on_resigned(PARTITION)
    registry.elected(PARTITION, 2)
    assert registry.is_loading
    return stage


def open_records(*producer_ids: int) -> list[LoadedRecords]:
    """Return a record of each producer's open transaction, with positions 5, 6 and so on."""
    stage = Stage()
    for number in range(len(producer_ids)):
        commit(stage, {T0: 5 + number})
    rows = zip(records(stage), producer_ids, strict=True)
    return [record._replace(open_producer_id=producer_id) for record, producer_id in rows]


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_marker_that_is_written_during_the_load_decides_once_that_is_over(
    is_commit: bool,
) -> None:
    stage = loading(*open_records(7, 8))
    end(stage, is_commit=is_commit)
    stage.timers.run_until_idle()
    assert [(5 if is_commit else -1, True)] == seen(stage, T0)
    end(stage, is_commit=True, producer_id=8)
    assert [(6, False)] == seen(stage, T0)


def test_a_marker_during_a_load_that_was_broken_off_decides_nothing_later() -> None:
    stage = loading(*open_records(7))
    registry = stage.coordinator.registry
    end(stage, is_commit=True)
    registry.on_resigned(PARTITION)
    registry.elected(PARTITION, 3)
    stage.timers.run_until_idle()
    assert [(-1, True)] == seen(stage, T0)


def test_a_marker_before_a_partition_is_read_again_decides_nothing_after_it() -> None:
    stage = loading(*open_records(7))
    log = stage.log
    assert isinstance(log, ReadLater)
    log.error = api_error(NOT_LEADER_OR_FOLLOWER)
    end(stage, is_commit=True)
    stage.timers.run_until_idle()
    end(stage, is_commit=True)
    log.error = None
    stage.clock.advance(COORDINATOR_LOAD_RETRY_MS)
    stage.timers.run_until_idle()
    assert [(-1, True)] == seen(stage, T0)


def test_of_records_that_come_by_their_markers_the_later_in_the_log_counts() -> None:
    stage = Stage()
    commit(stage, {T0: 5})
    commit(stage, {T0: 6})
    first, second = records(stage)
    assert [(6, False)] == seen(loaded(second, first), T0)
