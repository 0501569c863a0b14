"""What a consumer does when a listener, a request, or a partition fails."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import pytest

from engine.client import group_session
from engine.client.buffered_records import ConsumerRecord
from engine.client.consumer import Consumer, NotAssigned
from engine.client.errors import Unreachable
from engine.client.fetching import INT64_MAX, ConsumedRecords
from engine.client.group_admin import MemberToRemove, remove_members, set_offsets
from engine.client.groups import committed_offsets, describe_group
from engine.client.start_offsets import NoOffset
from engine.client.topic_admin import NewTopic, create_topics, delete_topics
from engine.errors import ApiError, EngineError, api_error
from engine.kafka_errors import (
    CORRUPT_MESSAGE,
    FENCED_INSTANCE_ID,
    GROUP_AUTHORIZATION_FAILED,
    REBALANCE_IN_PROGRESS,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from engine.model import TopicPartition
from tests.unit.client.test_consumer import MEMBER, POLL_MS, SETTINGS, Rebalances, offsets, read
from tests.unit.client.test_group_consumer import T0, T1, Stage


class Broken(Exception):
    """What a listener of these tests raises."""


class Listener(Rebalances):
    """A listener that does something as well."""

    def __init__(self) -> None:
        super().__init__()
        self.revoked: Callable[[], None] = lambda: None
        self.assigned: Callable[[], None] = lambda: None

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        super().on_revoked(partitions)
        self.revoked()

    def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        super().on_assigned(partitions)
        self.assigned()


def broken() -> None:
    raise Broken


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def reader(stage: Stage) -> Consumer:
    return Consumer(stage.new_client(), SETTINGS)


# Closing


def test_a_listener_may_commit_while_the_consumer_closes(stage: Stage) -> None:
    reader = Consumer(stage.new_client(), SETTINGS._replace(enable_auto_commit=False))
    listener = Listener()
    reader.subscribe(["t"], listener)
    read(reader)
    listener.revoked = reader.commit
    reader.close()
    assert 5 == committed_offsets(stage.client, "g")[T0]
    assert () == describe_group(stage.client, "g").members


def test_what_a_listener_commits_while_the_consumer_closes_is_the_last_word(
    stage: Stage, reader: Consumer
) -> None:
    listener = Listener()
    reader.subscribe(["t"], listener)
    read(reader)
    listener.revoked = lambda: reader.commit({T0: 2})
    reader.close()
    assert 2 == committed_offsets(stage.client, "g")[T0]


def test_a_listener_that_raises_does_not_keep_the_member_in_the_group(
    stage: Stage, reader: Consumer
) -> None:
    listener = Listener()
    reader.subscribe(["t"], listener)
    read(reader)
    listener.revoked = broken
    with pytest.raises(Broken):
        reader.close()
    assert () == describe_group(stage.client, "g").members
    assert 5 == committed_offsets(stage.client, "g")[T0]
    assert frozenset() == reader.assignment
    reader.close()


def test_a_commit_that_is_refused_does_not_keep_the_member_in_the_group(
    stage: Stage, reader: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader.subscribe(["t"])
    read(reader)
    assert reader._group is not None
    monkeypatch.setattr(reader._group.session, "commit", refused)
    with pytest.raises(ApiError, match="GROUP_AUTHORIZATION_FAILED"):
        reader.close()
    assert () == describe_group(stage.client, "g").members
    assert (frozenset(), frozenset()) == (reader.assignment, reader.paused)


def refused(*_: object) -> None:
    raise api_error(GROUP_AUTHORIZATION_FAILED)


def test_an_automatic_commit_that_is_refused_is_logged_and_reading_goes_on(
    stage: Stage,
    reader: Consumer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    reader.subscribe(["t"])
    read(reader)
    assert reader._group is not None
    monkeypatch.setattr(reader._group.session, "commit", refused)
    stage.cluster.produce(1, 1, key=T0)
    stage.cluster.pass_time(SETTINGS.auto_commit_interval_ms)
    assert [5] == read(reader)
    assert "group g: automatic commit of t-0: 5" in caplog.text
    assert "GROUP_AUTHORIZATION_FAILED" in caplog.text


def test_an_automatic_commit_of_a_fenced_member_is_the_error_of_the_poll(
    stage: Stage, reader: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader.subscribe(["t"])
    read(reader)
    assert reader._group is not None

    def fenced(*_: object) -> None:
        raise api_error(FENCED_INSTANCE_ID)

    monkeypatch.setattr(reader._group.session, "commit", fenced)
    stage.cluster.pass_time(SETTINGS.auto_commit_interval_ms)
    with pytest.raises(ApiError, match="FENCED_INSTANCE_ID"):
        reader.poll(POLL_MS)


def test_an_automatic_commit_of_a_deleted_topic_assigned_by_hand_ends_no_poll(
    stage: Stage, reader: Consumer, caplog: pytest.LogCaptureFixture
) -> None:
    create_topics(stage.client, [NewTopic("upper", 1, 1)])
    stage.cluster.pass_time(1_000)
    upper = TopicPartition("upper", 0)
    reader.assign([T0, upper])
    reader.seek(upper, 0)
    reader.poll(POLL_MS)
    reader.pause([upper])
    delete_topics(stage.client, ["upper"])
    stage.cluster.produce(1, 1, key=T0)
    stage.cluster.pass_time(SETTINGS.auto_commit_interval_ms)
    with caplog.at_level("DEBUG"):
        assert [5] == read(reader)
    assert "UNKNOWN_TOPIC_OR_PARTITION" in caplog.text
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


def test_a_consumer_of_nothing_commits_nothing(reader: Consumer) -> None:
    reader.commit()
    reader.close()


# Partitions that fail


def failing(
    partition: TopicPartition, position: int, code: int = TOPIC_AUTHORIZATION_FAILED
) -> ConsumedRecords:
    error = api_error(code)
    return ConsumedRecords(partition, [], position, position, error)


def fail_once(reader: Consumer, partition: TopicPartition, position: int) -> None:
    """Have the next fetch of a consumer's group bring an error first."""
    group = reader._group
    assert group is not None
    fetched = group.poll

    def poll(timeout_ms: int) -> list[ConsumedRecords]:
        consumed = fetched(timeout_ms)
        if not any(records.runs for records in consumed):
            return consumed
        group.poll = fetched  # type: ignore[method-assign]
        group.fetcher.stop(partition)
        others = [records for records in consumed if records.partition != partition]
        return [failing(partition, position), *others]

    group.poll = poll  # type: ignore[method-assign]


def test_records_that_came_with_the_error_of_another_partition_are_returned(
    stage: Stage, reader: Consumer
) -> None:
    reader.subscribe(["t"])
    fail_once(reader, T1, 0)
    with pytest.raises(ApiError, match="TOPIC_AUTHORIZATION_FAILED"):
        read(reader)
    # They were not returned yet, so they are not processed either.
    stage.cluster.pass_time(SETTINGS.auto_commit_interval_ms)
    assert [0, 1, 2, 3, 4] == offsets(reader.poll(0))
    assert 0 == committed_offsets(stage.client, "g")[T0]


def test_a_partition_that_failed_is_read_again_from_its_position(
    stage: Stage, reader: Consumer
) -> None:
    reader.subscribe(["t"])
    read(reader)
    stage.cluster.produce(1, 1, key=T0)
    stage.cluster.produce(2, 1, key=T1)
    fail_once(reader, T0, 5)
    with pytest.raises(ApiError):
        read(reader)
    assert 5 == reader.position(T0)
    reader.commit()
    assert 5 == committed_offsets(stage.client, "g")[T0]
    assert [5] == read(reader)
    assert INT64_MAX not in committed_offsets(stage.client, "g").values()


def test_a_batch_that_the_broker_finds_corrupt_is_the_error_of_the_poll(reader: Consumer) -> None:
    reader.assign([T0])
    # Retriable, but every poll would find it again.
    with pytest.raises(ApiError, match="CORRUPT_MESSAGE"):
        reader._append_records([failing(T0, 0, CORRUPT_MESSAGE)])


def test_a_reset_that_fails_is_tried_again(
    stage: Stage, reader: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader.assign([T0])
    read(reader)
    reader.seek(T0, 99)
    with monkeypatch.context() as patch:
        patch.setattr(reader._starts, "find_by_reset", unreachable)
        assert [] == read(reader)
    assert 99 == reader.position(T0)
    assert [0, 1, 2, 3, 4] == read(reader)


def unreachable(*_: object, **__: object) -> None:
    raise Unreachable("here", 1, "refused")


def test_waiting_records_of_a_paused_partition_do_not_hold_up_others(
    stage: Stage,
) -> None:
    stage.cluster.produce(2, 1, key=T1)
    reader = Consumer(stage.new_client(), SETTINGS._replace(max_poll_records=1))
    reader.subscribe(["t"])
    first: list[ConsumerRecord] = []
    while not offsets(first, T0):
        first = reader.poll(POLL_MS)
    reader.pause([T0])
    stage.cluster.produce(2, 1, key=T1)
    found = [record for _ in range(6) for record in reader.poll(POLL_MS)]
    assert 1 in offsets(found, T1)
    assert [] == offsets(found, T0)
    reader.resume([T0])
    assert [1, 2, 3, 4] == read(reader, 6)


def test_polls_without_anything_to_read_wait(reader: Consumer) -> None:
    reader.assign([])
    began_ms = reader._client.clock.monotonic_ms()
    assert [] == reader.poll(POLL_MS)
    assert began_ms + POLL_MS <= reader._client.clock.monotonic_ms()


# Troubles that may pass


def test_a_topic_that_is_deleted_holds_up_no_other(
    stage: Stage, reader: Consumer, caplog: pytest.LogCaptureFixture
) -> None:
    create_topics(stage.client, [NewTopic("upper", 1, 1)])
    stage.cluster.pass_time(1_000)
    reader.subscribe(["t", "upper"])
    read(reader)
    delete_topics(stage.client, ["upper"])
    stage.cluster.produce(1, 1, key=T0)
    assert [5] == read(reader)
    assert "upper-0 failed, and is tried again: UNKNOWN_TOPIC_OR_PARTITION" in caplog.text
    # The leader of the group takes note of it, and the group goes on without.
    read(reader)
    assert {T0, T1} == reader.assignment


def test_a_topic_that_is_deleted_before_it_is_begun_holds_up_no_other(
    stage: Stage, reader: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    resets = reader._starts.find_by_reset
    of_t1: list[int | EngineError] = [api_error(UNKNOWN_TOPIC_OR_PARTITION)]

    def without_t1(
        partitions: Sequence[TopicPartition],
    ) -> Mapping[TopicPartition, int | EngineError]:
        return {key: of_t1[0] if key == T1 else row for key, row in resets(partitions).items()}

    # Before the group takes note of it.
    monkeypatch.setattr(reader._starts, "find_by_reset", without_t1)
    stage.cluster.produce(2, 1, key=T1)
    reader.subscribe(["t"])
    assert [0, 1, 2, 3, 4] == read(reader)
    assert reader._group is not None
    assert isinstance(reader._group.trouble, ApiError)
    with pytest.raises(ApiError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        reader.position(T1)
    assert 5 == reader.position(T0)
    of_t1[0] = 0
    stage.cluster.pass_time(1_000)
    assert [0] == [offset for _ in range(4) for offset in offsets(reader.poll(POLL_MS), T1)]
    assert reader._group.trouble is None


def test_a_poll_tries_again_until_its_time_is_up(
    stage: Stage,
    reader: Consumer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    reader.subscribe(["t"])
    read(reader)
    stage.cluster.produce(1, 1, key=T0)
    assert reader._group is not None
    session, clock = reader._group.session, reader._client.clock
    began_ms = clock.monotonic_ms()
    poll = session.poll

    def down_for_a_second() -> bool:
        if clock.monotonic_ms() < began_ms + 1_000:
            unreachable()
        return poll()

    monkeypatch.setattr(session, "poll", down_for_a_second)
    assert [] == reader.poll(500)
    assert 500 <= clock.monotonic_ms() - began_ms < 600
    assert [5] == offsets(reader.poll(2_000))
    assert 2 == caplog.text.count("poll failed, and is tried again: cannot reach here:1: refused")


def test_what_a_listener_cannot_reach_is_the_error_of_the_poll(reader: Consumer) -> None:
    listener = Listener()
    listener.assigned = unreachable
    reader.subscribe(["t"], listener)
    with pytest.raises(Unreachable):
        reader.poll(POLL_MS)


# Rebalances


def rebalance(reader: Consumer) -> None:
    """Have the next poll join again."""
    assert reader._group is not None
    reader._group.session.rejoin_if_refused(REBALANCE_IN_PROGRESS)


def test_a_listener_that_raises_is_called_once_and_the_next_poll_joins(reader: Consumer) -> None:
    listener = Listener()
    reader.subscribe(["t"], listener)
    read(reader)
    listener.revoked = broken
    rebalance(reader)
    with pytest.raises(Broken):
        reader.poll(POLL_MS)
    assert frozenset() == reader.assignment
    reader.poll(POLL_MS)
    assert {T0, T1} == reader.assignment
    assert ["assigned", "revoked", "assigned"] == [name for name, _ in listener.calls]


def test_a_join_that_fails_revokes_nothing_twice(
    reader: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener = Listener()
    reader.subscribe(["t"], listener)
    read(reader)
    rebalance(reader)
    assert reader._group is not None
    with monkeypatch.context() as patch:
        patch.setattr(reader._group.session, "join", unreachable)
        for _ in range(2):
            assert [] == reader.poll(POLL_MS)
    reader.poll(POLL_MS)
    assert ["assigned", "revoked", "assigned"] == [name for name, _ in listener.calls]


def test_committed_offsets_that_could_not_be_had_are_requested_again(
    stage: Stage, reader: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_offsets(stage.client, "g", {T0: 3})
    reader.subscribe(["t"])
    with monkeypatch.context() as patch:
        patch.setattr(group_session, "committed_offsets", unreachable)
        for _ in range(2):
            assert [] == reader.poll(POLL_MS)
    assert [3, 4] == read(reader)


def test_nothing_of_the_assignment_before_is_read_while_the_next_has_no_offsets(
    stage: Stage, reader: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader.subscribe(["t"])
    read(reader)
    rebalance(reader)
    stage.cluster.produce(1, 1, key=T0)
    with monkeypatch.context() as patch:
        patch.setattr(group_session, "committed_offsets", unreachable)
        for _ in range(3):
            assert [] == reader.poll(POLL_MS)
    assert [5] == read(reader)


def test_a_listener_may_seek_where_nothing_says_where_to_begin(stage: Stage) -> None:
    reader = Consumer(stage.new_client(), SETTINGS._replace(auto_offset_reset="none"))
    listener = Listener()
    # T1 is empty.
    listener.assigned = lambda: [reader.seek(*start) for start in ((T0, 2), (T1, 0))] and None
    reader.subscribe(["t"], listener)
    assert [2, 3, 4] == read(reader)


def test_a_partition_without_an_offset_is_an_error_of_each_poll(stage: Stage) -> None:
    reader = Consumer(stage.new_client(), SETTINGS._replace(auto_offset_reset="none"))
    reader.subscribe(["t"])
    for _ in range(3):
        with pytest.raises(NoOffset):
            reader.poll(POLL_MS)
    reader.seek(T1, 0)
    reader.seek(T0, 4)
    assert [4] == read(reader)


def test_a_listener_sees_positions_of_what_was_assigned(reader: Consumer) -> None:
    positions: list[int] = []
    listener = Listener()
    listener.assigned = lambda: positions.append(reader.position(T0))
    reader.subscribe(["t"], listener)
    reader.poll(POLL_MS)
    assert [0] == positions


def test_a_deleted_topic_does_not_keep_a_member_from_joining(stage: Stage) -> None:
    create_topics(stage.client, [NewTopic("upper", 1, 1)])
    stage.cluster.pass_time(1_000)
    stage.cluster.produce(1, 1, key=T0)
    reader = Consumer(stage.new_client(), SETTINGS._replace(metadata_max_age_ms=1_000))
    reader.subscribe(re.compile("t|u.*"))
    read(reader)
    upper = TopicPartition("upper", 0)
    reader.seek(upper, 0)
    delete_topics(stage.client, ["upper"])
    stage.cluster.pass_time(2_000)
    began_ms = reader._client.clock.monotonic_ms()
    for _ in range(20):
        try:
            reader.poll(POLL_MS)
        except ApiError:
            continue
    assert {T0, T1} == reader.assignment
    assert 6 == committed_offsets(stage.client, "g")[T0]
    # The commit of what is gone is not repeated until the time is up.
    assert reader._client.clock.monotonic_ms() - began_ms < reader._client.timeout_ms


def cooperative(stage: Stage) -> Consumer:
    member = MEMBER._replace(assignors=("cooperative-sticky",))
    return Consumer(stage.new_client(), SETTINGS._replace(member=member))


def test_what_a_cooperative_member_has_lost_is_revoked_and_assigned_again(stage: Stage) -> None:
    reader = cooperative(stage)
    listener = Listener()
    reader.subscribe(["t"], listener)
    read(reader)
    assert reader._group is not None
    remove_members(stage.client, "g", [MemberToRemove(reader._group.session.member_id)])
    stage.cluster.pass_time(MEMBER.heartbeat_interval_ms)
    assert [0, 1, 2, 3, 4] == read(reader)
    assert [("assigned", (T0, T1)), ("revoked", (T0, T1)), ("assigned", (T0, T1))] == listener.calls


def test_a_cooperative_listener_that_raises_leaves_no_partition_with_the_member(
    stage: Stage,
) -> None:
    reader = cooperative(stage)
    listener = Listener()
    reader.subscribe(["t"], listener)
    read(reader)
    listener.revoked = broken
    assert reader._group is not None
    reader._group.session.partitions = (T0,)
    reader._group.session.kept_partitions = frozenset((T0,))
    with pytest.raises(Broken):
        reader._group._take_over((T0,))
    assert (T0,) == reader._group.fetcher.partitions
    assert {T0} == reader.assignment


# Patterns, and assignment by hand


def test_a_pattern_that_could_not_be_matched_is_matched_by_the_next_poll(
    reader: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(reader._client, "view", unreachable)
        with pytest.raises(Unreachable):
            reader.subscribe(re.compile("t"))
    assert [0, 1, 2, 3, 4] == read(reader)


def test_a_subscription_to_no_topic_leaves_the_group(stage: Stage, reader: Consumer) -> None:
    reader.subscribe(["t"])
    read(reader)
    reader.subscribe([])
    assert () == describe_group(stage.client, "g").members
    assert ((), frozenset()) == (reader.subscription, reader.assignment)


@pytest.mark.parametrize("has_group", [True, False])
def test_a_partition_that_is_assigned_again_goes_on(stage: Stage, *, has_group: bool) -> None:
    member = MEMBER if has_group else None
    reader = Consumer(stage.new_client(), SETTINGS._replace(member=member, max_poll_records=2))
    reader.assign([T0])
    assert [0, 1] == next(o for _ in range(4) if (o := offsets(reader.poll(POLL_MS))))
    reader.assign([T0, T1])
    assert 2 == reader.position(T0)
    assert [2, 3, 4] == read(reader)
    reader.assign([T1])
    assert {T1} == reader.assignment
    if has_group:
        assert 5 == committed_offsets(stage.client, "g")[T0]


def test_a_subscription_commits_what_was_assigned_by_hand(stage: Stage, reader: Consumer) -> None:
    reader.assign([T0])
    read(reader)
    reader.subscribe(["t"])
    assert 5 == committed_offsets(stage.client, "g")[T0]
    assert [] == read(reader)


def test_a_pattern_that_matches_the_same_topics_causes_no_rebalance(
    stage: Stage,
) -> None:
    reader = Consumer(stage.new_client(), SETTINGS._replace(metadata_max_age_ms=1_000))
    reader.subscribe(re.compile("t"))
    read(reader)
    for _ in range(3):
        stage.cluster.pass_time(1_000)
        reader.poll(0)
    assert reader._group is not None
    assert 1 == reader._group.session.generation_id


def test_a_seek_of_a_partition_of_others_moves_none(reader: Consumer) -> None:
    reader.assign([T0])
    reader.seek(T0, 3)
    with pytest.raises(NotAssigned):
        reader.seek_to_beginning([T0, T1])
    assert 3 == reader.position(T0)


def test_partitions_that_were_never_begun_are_given_up_too(
    stage: Stage, reader: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topics(stage.client, [NewTopic("v", 1, 1)])
    reader.subscribe(["t"])
    with monkeypatch.context() as patch:
        patch.setattr(group_session, "committed_offsets", unreachable)
        assert [] == reader.poll(POLL_MS)
    reader.subscribe(["v"])
    assert [] == read(reader)
    assert reader._group is not None
    assert (TopicPartition("v", 0),) == reader._group.fetcher.partitions


# Records that nobody has seen


def test_records_that_are_put_back_are_returned_again_and_not_processed(
    stage: Stage, reader: Consumer
) -> None:
    reader.subscribe(["t"])
    records: list[ConsumerRecord] = []
    while not records:
        records = reader.poll(POLL_MS)
    reader.put_back(records[2:])
    assert 2 == reader.position(T0)
    reader.commit()
    assert 2 == committed_offsets(stage.client, "g")[T0]
    assert [2, 3, 4] == offsets(reader.poll(0))
    reader.put_back(records)
    assert 2 == reader.position(T0)


def test_records_of_a_partition_that_was_moved_are_not_put_back(reader: Consumer) -> None:
    reader.subscribe(["t"])
    records: list[ConsumerRecord] = []
    while not records:
        records = reader.poll(POLL_MS)
    reader.seek(T0, 4)
    reader.put_back(records)
    assert [4] == read(reader)
