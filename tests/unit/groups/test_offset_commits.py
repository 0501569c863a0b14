"""Offsets are committed, fetched and deleted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from engine.errors import WireError
from engine.groups.group_offsets import CommittedOffset, GroupOffsets
from engine.groups.ports import CommittingProducer, GroupRecord, Written
from engine.groups.records import build_offset_record
from engine.groups.requests import MemberRequest
from engine.host.promise import Promise
from engine.kafka_errors import MESSAGE_TOO_LARGE
from engine.model import TopicPartition
from tests.unit.groups.stage import SESSION_MS, SETTINGS, MemoryLog, Stage

T0, U0 = TopicPartition("t", 0), TopicPartition("u", 0)
ALONE = MemberRequest("g", -1, "", None)
SEVEN = CommittedOffset(7, 3, "note", 1_000)


@pytest.fixture
def stage() -> Stage:
    return Stage()


def commit(stage: Stage, request: MemberRequest, offset: CommittedOffset = SEVEN) -> int:
    return stage.coordinator.commits.commit(request, {T0: offset}).result()[T0]


def fetched(stage: Stage, group_id: str = "g") -> CommittedOffset:
    code, offsets = stage.coordinator.commits.fetch(group_id, [T0])
    assert code == 0
    return offsets[T0]


def test_what_was_committed_is_fetched(stage: Stage) -> None:
    assert 0 == commit(stage, ALONE)
    assert SEVEN == fetched(stage)
    assert (0, {T0: SEVEN}) == stage.coordinator.commits.fetch("g", None)


def test_what_nobody_committed_is_minus_one(stage: Stage) -> None:
    assert -1 == fetched(stage).offset
    assert (0, {}) == stage.coordinator.commits.fetch("unknown", None)
    commit(stage, ALONE)
    assert -1 == stage.coordinator.commits.fetch("g", [U0])[1][U0].offset


def test_a_commit_counts_once_it_is_written(stage: Stage) -> None:
    stage.log.is_held = True
    promise = stage.coordinator.commits.commit(ALONE, {T0: SEVEN})
    assert -1 == fetched(stage).offset
    stage.log.release()
    assert {T0: 0} == promise.result()
    assert SEVEN == fetched(stage)


@pytest.mark.parametrize(
    ("log_code", "code"),
    [(3, 15), (19, 15), (20, 15), (6, 16), (56, 16), (10, 28), (18, 28), (7, 7)],
)
def test_a_commit_that_cannot_be_written_is_forgotten(
    stage: Stage, log_code: int, code: int
) -> None:
    stage.log.error_code = log_code
    assert code == commit(stage, ALONE)
    assert stage.group().offsets.is_empty


def test_the_later_of_two_commits_in_the_log_counts(stage: Stage) -> None:
    offsets = GroupOffsets()
    first, second = CommittedOffset(1), CommittedOffset(2)
    offsets.prepare({T0: first})
    offsets.prepare({T0: second})
    offsets.complete_commit(T0, second, 11)
    offsets.complete_commit(T0, first, 10)
    assert second == offsets.get(T0)


def test_a_commit_of_two_partitions_is_later_in_the_log_than_one_of_the_second(
    stage: Stage,
) -> None:
    commits, later = stage.coordinator.commits, CommittedOffset(8)
    commits.commit(ALONE, {U0: SEVEN})
    commits.commit(ALONE, {T0: later, U0: later})
    assert (0, {U0: later, T0: later}) == commits.fetch("g", None)


def test_who_names_no_generation_commits_for_a_group_without_members(stage: Stage) -> None:
    assert 0 == commit(stage, ALONE._replace(member_id="somebody"))
    assert 25 == commit(stage, ALONE._replace(member_id="somebody", generation_id=0))


def test_a_member_commits_in_its_generation_alone(stage: Stage) -> None:
    (member,) = stage.stable()
    mine = MemberRequest("g", 1, member.member_id, None)
    assert 0 == commit(stage, mine)
    assert 22 == commit(stage, mine._replace(generation_id=2))
    assert 25 == commit(stage, mine._replace(member_id="nobody"))
    assert 22 == commit(stage, mine._replace(generation_id=-1))
    assert 25 == commit(stage, ALONE)
    assert 25 == commit(stage, ALONE._replace(group_instance_id="i"))
    assert 22 == commit(stage, mine._replace(group_id="unknown"))


def test_commits_are_taken_while_a_rebalance_is_prepared_and_not_while_it_completes(
    stage: Stage,
) -> None:
    (member,) = stage.stable()
    mine = MemberRequest("g", 1, member.member_id, None)
    stage.join()
    assert ("PreparingRebalance", 0) == (stage.state, commit(stage, mine))
    stage.join(member.member_id)
    mine = mine._replace(generation_id=2)
    assert ("CompletingRebalance", 27) == (stage.state, commit(stage, mine))


def test_a_commit_starts_the_session_again(stage: Stage) -> None:
    (member,) = stage.stable()
    stage.pass_ms(9_999)
    commit(stage, MemberRequest("g", 1, member.member_id, None))
    stage.pass_ms(9_999)
    assert "Stable" == stage.state
    stage.pass_ms(1)
    assert "Empty" == stage.state


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        ("x" * 4_096, 0),
        ("x" * 4_097, 12),
        ("ä" * 4_096, 0),
        # Java counts two for each.
        ("😀" * 2_048, 0),
        ("😀" * 2_049, 12),
    ],
)
@pytest.mark.parametrize("producer", [None, CommittingProducer(7, 0)])
def test_the_metadata_of_a_commit_has_a_bound(
    stage: Stage, metadata: str, code: int, producer: CommittingProducer | None
) -> None:
    commits, rows = stage.coordinator.commits, {T0: CommittedOffset(1, metadata=metadata)}
    if producer is None:
        assert {T0: code} == commits.commit(ALONE, rows).result()
        assert (code == 0) is (fetched(stage).offset == 1)
    else:
        assert {T0: code} == commits.commit_in_transaction(ALONE, producer, rows).result()
        assert (code == 0) is bool(commits.unstable_partitions("g", [T0]))


def commit_fast(
    stage: Stage, request: MemberRequest, offset: CommittedOffset = SEVEN
) -> int | Promise[int] | None:
    key, value = build_offset_record(request.group_id, T0, offset)
    assert value is not None
    return stage.coordinator.commits.commit_fast(request, T0, offset, key, value)


def test_the_fast_path_writes_what_the_group_takes(stage: Stage) -> None:
    (member,) = stage.stable()
    mine = MemberRequest("g", 1, member.member_id, None)
    assert 0 == commit_fast(stage, mine)
    assert SEVEN == fetched(stage)
    assert (22, 25) == (
        commit_fast(stage, mine._replace(generation_id=2)),
        commit_fast(stage, ALONE),
    )
    assert SEVEN == fetched(Stage(log=stage.log))


@pytest.mark.parametrize(("log_code", "code"), [(3, 15), (19, 15), (10, 28), (7, 7)])
def test_the_fast_path_forgets_what_cannot_be_written(
    stage: Stage, log_code: int, code: int
) -> None:
    commit(stage, ALONE)
    stage.log.is_held = True
    assert isinstance(commit_fast(stage, ALONE, CommittedOffset(8)), Promise)
    stage.log.error_code = log_code
    assert code == commit_fast(stage, ALONE, CommittedOffset(9))
    # The commit before is on its way, but no longer the newest that is.
    assert not stage.group().offsets.is_unstable(T0)
    stage.log.release()
    assert 8 == fetched(stage).offset


def test_a_commit_that_is_written_now_ends_what_is_pending(stage: Stage) -> None:
    commit(stage, ALONE)
    stage.log.is_held = True
    commit_fast(stage, ALONE, CommittedOffset(8))
    assert stage.group().offsets.is_unstable(T0)
    stage.log.is_held = False
    assert 0 == commit_fast(stage, ALONE, CommittedOffset(9))
    assert (False, 9) == (stage.group().offsets.is_unstable(T0), fetched(stage).offset)
    stage.log.release()
    assert 9 == fetched(stage).offset


def test_of_two_commits_that_are_written_now_the_later_in_the_log_counts() -> None:
    offsets = GroupOffsets()
    offsets.complete_commit_fast(T0, CommittedOffset(1), 5)
    offsets.complete_commit_fast(T0, CommittedOffset(2), 4)
    assert CommittedOffset(1) == offsets.get(T0)
    # A tombstone of commits that waited hides what is before it, as of any commit.
    offsets.prepare({T0: CommittedOffset(3)})
    offsets.remove_offsets([T0])
    offsets.remove_before(T0, 9)
    offsets.complete_commit_fast(T0, CommittedOffset(4), 8)
    assert offsets.get(T0) is None
    offsets.complete_commit_fast(T0, CommittedOffset(5), 10)
    assert CommittedOffset(5) == offsets.get(T0)


def test_the_fast_path_does_nothing_while_the_groups_partition_is_not_served(stage: Stage) -> None:
    commit(stage, ALONE)
    partition = stage.coordinator.registry.partition_of("g")
    stage.coordinator.registry.note_open(7, "g")
    stage.coordinator.registry.stop()
    # Nothing is held of open transactions either.
    assert not stage.coordinator.registry._open
    assert stage.coordinator.registry.owned_partition_of("g") is None
    assert commit_fast(stage, ALONE) is None
    assert 1 == len(stage.log.partitions[partition])


def test_the_fast_path_does_nothing_while_the_groups_partition_is_read_again(stage: Stage) -> None:
    commit(stage, ALONE)
    registry = stage.coordinator.registry
    group, partition = stage.group(), registry.partition_of("g")
    registry.on_resigned(partition)
    # As of a topic that has grown: the group is in a partition of which another was loaded.
    registry.groups["g"] = group
    registry._loads.begin(partition, 2)
    assert registry.owned_partition_of("g") is None
    assert commit_fast(stage, ALONE) is None


def test_a_commit_of_generation_0_is_no_commit_without_one(stage: Stage) -> None:
    commit(stage, ALONE)
    assert 25 == commit_fast(stage, ALONE._replace(generation_id=0), CommittedOffset(8))
    assert SEVEN == fetched(stage)


def test_the_fast_path_does_nothing_for_a_group_that_is_not_here(stage: Stage) -> None:
    assert commit_fast(stage, ALONE) is None
    commit(stage, ALONE)
    stage.coordinator.registry._owned.clear()
    assert commit_fast(stage, ALONE, CommittedOffset(8)) is None
    assert SEVEN == stage.group().offsets.get(T0)


@pytest.mark.parametrize(("metadata", "code"), [("x" * 4_096, 0), ("x" * 4_097, None)])
def test_the_fast_path_leaves_long_metadata(stage: Stage, metadata: str, code: int | None) -> None:
    commit(stage, ALONE)
    assert code == commit_fast(stage, ALONE, CommittedOffset(8, metadata=metadata))
    assert (7 if code is None else 8) == fetched(stage).offset


def test_a_group_is_made_for_commits_where_there_is_none(stage: Stage) -> None:
    stage.coordinator.commits.make_group("g")
    made = stage.group()
    assert ("Empty", {}) == (stage.state, made.members)
    stage.coordinator.commits.make_group("g")
    assert stage.group() is made


def test_a_bound_below_0_refuses_commits_without_metadata_too() -> None:
    stage = Stage(SETTINGS._replace(offset_metadata_max_bytes=-1))
    stage.coordinator.commits.make_group("g")
    bare = CommittedOffset(8)
    assert commit_fast(stage, ALONE, bare) is None
    assert {T0: 12} == stage.coordinator.commits.commit(ALONE, {T0: bare}).result()


def test_offsets_of_subscribed_topics_are_not_deleted(stage: Stage) -> None:
    (member,) = stage.stable()
    mine = MemberRequest("g", 1, member.member_id, None)
    stage.coordinator.commits.commit(mine, {T0: SEVEN, U0: SEVEN})
    delete = stage.coordinator.commits.delete_offsets
    assert (0, {T0: 86, U0: 0}) == delete("g", [T0, U0])
    assert {T0: SEVEN} == stage.group().offsets.all()
    assert (69, {}) == delete("unknown", [T0])


def test_batches_of_commits_have_a_sequence_as_in_kafka(stage: Stage) -> None:
    (member,) = stage.stable()
    commit(stage, MemberRequest("g", 1, member.member_id, None), SEVEN)
    stage.pass_ms(10_000)
    stage.coordinator.commits.delete_offsets("g", [T0])
    group, offset, empty, tombstone, end = stage.log.base_sequences
    assert (-1, 0, -1, -1, -1) == (group, offset, empty, tombstone, end)


def test_offsets_of_a_group_without_members_are_deleted_for_good(stage: Stage) -> None:
    commit(stage, ALONE)
    stage.coordinator.commits.commit(ALONE, {U0: SEVEN})
    assert (0, {T0: 0}) == stage.coordinator.commits.delete_offsets("g", [T0])
    assert {U0: SEVEN} == stage.group().offsets.all()
    assert (0, {U0: 0}) == stage.coordinator.commits.delete_offsets("g", [U0])
    assert {} == stage.coordinator.registry.groups
    assert -1 == fetched(Stage(log=stage.log)).offset


@pytest.mark.parametrize("producer", [None, CommittingProducer(7, 0)])
def test_a_commit_that_cannot_be_written_is_not_pending(
    producer: CommittingProducer | None,
) -> None:
    stage = Stage(SETTINGS._replace(offset_metadata_max_bytes=100_000))
    commits = stage.coordinator.commits
    rows = {T0: CommittedOffset(1, metadata="x" * 32_768)}
    with pytest.raises(WireError):
        if producer is None:
            commits.commit(ALONE, rows)
        else:
            commits.commit_in_transaction(ALONE, producer, rows)
    assert set() == commits.unstable_partitions("g", [T0])


@pytest.mark.parametrize("is_committed", [True, False])
@pytest.mark.parametrize("removal", ["of partitions", "of a topic", "of the group"])
def test_what_is_deleted_while_a_commit_is_on_its_way_is_deleted_for_good(
    stage: Stage, removal: str, *, is_committed: bool
) -> None:
    commits, admin = stage.coordinator.commits, stage.coordinator.admin
    commits.commit(ALONE, {U0: SEVEN} | ({T0: SEVEN} if is_committed else {}))
    stage.log.is_held = True
    promise = commits.commit(ALONE, {T0: CommittedOffset(8)})
    if removal == "of partitions":
        assert (0, {T0: 0}) == commits.delete_offsets("g", [T0])
    elif removal == "of a topic":
        admin.forget_topics(["t"])
    else:
        assert {"g": 0} == admin.delete(["g"])
    assert set() == commits.unstable_partitions("g", [T0])
    stage.log.release()
    assert {T0: 0} == promise.result()
    left = {} if removal == "of the group" else {U0: SEVEN}
    assert (0, left) == commits.fetch("g", None)
    assert (0, left) == Stage(log=stage.log).coordinator.commits.fetch("g", None)


@pytest.mark.parametrize(("missing_bytes", "batch_count"), [(0, 1), (1, 2)])
def test_a_batch_of_tombstones_has_keys_up_to_its_bound(
    monkeypatch: pytest.MonkeyPatch, missing_bytes: int, batch_count: int
) -> None:
    stage = Stage()
    stage.coordinator.commits.commit(ALONE, {T0: SEVEN, U0: SEVEN})
    size = sum(len(build_offset_record("g", key, None).key) for key in (T0, U0))
    limit = "engine.groups.offset_commits.TOMBSTONE_BATCH_BYTES_MAX"
    monkeypatch.setattr(limit, size - missing_bytes)
    batches: list[int] = []
    append = stage.log.append

    def counted(partition: int, records: Sequence[GroupRecord], **more: Any) -> Promise[Written]:
        batches.append(len(records))
        return append(partition, records, **more)

    monkeypatch.setattr(stage.log, "append", counted)
    stage.coordinator.commits.delete_offsets("g", [T0, U0])
    assert (batch_count, 2) == (len(batches), sum(batches))


def test_commits_whose_tombstones_could_not_be_written_count_as_in_the_log(stage: Stage) -> None:
    commits = stage.coordinator.commits
    stage.log.is_held = True
    deleted = [TopicPartition("t", number) for number in range(4)]
    commits.commit(ALONE, dict.fromkeys([*deleted, U0], SEVEN))
    stage.log.error_code = MESSAGE_TOO_LARGE
    commits.delete_offsets("g", deleted[::-1])
    stage.log.error_code = 0
    stage.log.release()
    in_log = dict.fromkeys([*deleted, U0], SEVEN)
    assert (0, in_log) == Stage(log=stage.log).coordinator.commits.fetch("g", None)
    assert (0, in_log) == commits.fetch("g", None)


class SmallBatches(MemoryLog):
    """A log whose batches have at most a mebibyte of keys."""

    def append(
        self, partition: int, records: Sequence[GroupRecord], **given: Any
    ) -> Promise[Written]:
        """Append, unless the batch is too large."""
        if sum(len(record.key) for record in records) > 1 << 20:
            return Promise.of(Written(MESSAGE_TOO_LARGE))
        return super().append(partition, records, **given)


@pytest.mark.parametrize("is_generation", [True, False])
def test_a_group_with_many_offsets_is_deleted_for_good(*, is_generation: bool) -> None:
    stage = Stage(log=SmallBatches())
    commits, group_id = stage.coordinator.commits, "g" * 10_000
    if is_generation:
        stage.join(group_id=group_id)
        stage.pass_ms(3_000 + SESSION_MS)
    alone = ALONE._replace(group_id=group_id)
    partitions = [TopicPartition("t", number) for number in range(150)]
    for at in range(0, 150, 50):
        assert {0} == set(
            commits.commit(alone, dict.fromkeys(partitions[at : at + 50], SEVEN)).result().values()
        )
    assert {group_id: 0} == stage.coordinator.admin.delete([group_id])
    again = Stage(log=stage.log)
    assert (0, {}) == again.coordinator.commits.fetch(group_id, None)
    assert {} == again.coordinator.registry.groups


def test_what_is_committed_after_a_deletion_stays(stage: Stage) -> None:
    commits = stage.coordinator.commits
    commits.commit(ALONE, {U0: SEVEN, T0: SEVEN})
    stage.log.is_held = True
    commits.delete_offsets("g", [T0, U0])
    # The group had nothing left, and ended: this is another.
    commits.commit(ALONE, {T0: CommittedOffset(8)})
    commits.delete_offsets("g", [U0])
    commits.commit(ALONE, {U0: CommittedOffset(9)})
    stage.log.release()
    left = {T0: CommittedOffset(8), U0: CommittedOffset(9)}
    assert (0, left) == commits.fetch("g", None)
    assert (0, left) == Stage(log=stage.log).coordinator.commits.fetch("g", None)
