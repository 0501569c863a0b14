"""A consumer with a group and without one, on brokers in memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import pytest

from engine.client.buffered_records import ConsumerRecord
from engine.client.connection import Call
from engine.client.consumer import Consumer, NoGroup, NotAssigned
from engine.client.consumer_settings import ConsumerSettings
from engine.client.errors import Unreachable
from engine.client.fetching import FetchOptions
from engine.client.group_admin import delete_groups, set_offsets
from engine.client.group_session import GroupSession
from engine.client.groups import committed_offsets, describe_group, request_commits
from engine.client.member_session import MemberSettings
from engine.client.offsets import EARLIEST
from engine.client.start_offsets import NoOffset, UnknownReset
from engine.client.topic_admin import NewPartitions, NewTopic, create_partitions, create_topics
from engine.errors import ApiError
from engine.model import TopicPartition
from engine.wire import messages
from tests.unit.client.test_group_consumer import T0, T1, Stage

MEMBER = MemberSettings("g", session_timeout_ms=10_000, max_poll_interval_ms=20_000)
SETTINGS = ConsumerSettings(
    MEMBER, auto_offset_reset="earliest", fetch=FetchOptions(max_wait_ms=100)
)
POLL_MS = 200


class Rebalances:
    """A listener that keeps what it was called with."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[TopicPartition, ...]]] = []

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self.calls.append(("revoked", tuple(partitions)))

    def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self.calls.append(("assigned", tuple(partitions)))


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def consumer(stage: Stage) -> Iterator[Callable[..., Consumer]]:
    opened: list[Consumer] = []

    def make(settings: ConsumerSettings = SETTINGS) -> Consumer:
        opened.append(Consumer(stage.new_client(), settings))
        return opened[-1]

    yield make


def offsets(records: list[ConsumerRecord], partition: TopicPartition = T0) -> list[int]:
    return [record.offset for record in records if record.topic_partition == partition]


def read(consumer: Consumer, polls: int = 4) -> list[int]:
    return [offset for _ in range(polls) for offset in offsets(consumer.poll(POLL_MS))]


def test_a_subscription_reads_from_the_reset_and_commits_as_it_closes(
    stage: Stage, consumer: Callable[..., Consumer]
) -> None:
    reader = consumer()
    reader.subscribe(["t"])
    assert [0, 1, 2, 3, 4] == read(reader)
    assert (("t",), {T0, T1}) == (reader.subscription, reader.assignment)
    assert 5 == reader.position(T0)
    reader.close()
    assert 5 == committed_offsets(stage.client, "g")[T0]
    assert () == describe_group(stage.client, "g").members
    assert frozenset() == reader.assignment


def test_a_record_has_all_that_its_batch_has(consumer: Callable[..., Consumer]) -> None:
    reader = consumer()
    reader.subscribe(["t"])
    record = next(r for _ in range(4) for r in reader.poll(POLL_MS))
    assert ("t", 0, 0, (), 0) == (*record.topic_partition, record.offset, record.headers, 0)
    assert 0 <= record.leader_epoch
    assert record.value is not None


def test_no_poll_returns_more_than_its_share_and_only_that_is_committed(
    stage: Stage, consumer: Callable[..., Consumer]
) -> None:
    reader = consumer(SETTINGS._replace(max_poll_records=2))
    reader.subscribe(["t"])
    first = next(batch for _ in range(4) if (batch := reader.poll(POLL_MS)))
    assert [0, 1] == offsets(first)
    assert 2 == reader.position(T0)
    reader.commit()
    assert 2 == committed_offsets(stage.client, "g")[T0]
    assert [2, 3] == offsets(reader.poll(0))
    # A poll means that what the one before returned is processed, and not what it returns itself.
    stage.cluster.pass_time(SETTINGS.auto_commit_interval_ms)
    assert [4] == offsets(reader.poll(0))
    assert 4 == committed_offsets(stage.client, "g")[T0]


@pytest.mark.parametrize("is_subscribed", [True, False])
def test_a_commit_of_positions_has_the_leader_epochs_of_the_last_records(
    stage: Stage, consumer: Callable[..., Consumer], is_subscribed: bool
) -> None:
    reader = consumer(SETTINGS._replace(enable_auto_commit=False))
    if is_subscribed:
        reader.subscribe(["t"])
    else:
        reader.assign([T0])
    records = [r for _ in range(4) for r in reader.poll(POLL_MS)]
    reader.commit()
    found = request_commits(stage.client, "g")[T0]
    assert (5, records[-1].leader_epoch) == (found.offset, found.leader_epoch)
    reader.seek(T0, 3)
    reader.commit()
    found = request_commits(stage.client, "g")[T0]
    assert (3, -1) == (found.offset, found.leader_epoch)


def test_what_was_returned_and_not_processed_is_read_again(
    stage: Stage, consumer: Callable[..., Consumer]
) -> None:
    dead = consumer()
    dead.subscribe(["t"])
    assert [0, 1, 2, 3, 4] == read(dead, 2)
    stage.cluster.pass_time(MEMBER.session_timeout_ms + 1_000)
    heir = consumer()
    heir.subscribe(["t"])
    assert [0, 1, 2, 3, 4] == read(heir)


def test_a_paused_partition_waits_with_its_position(consumer: Callable[..., Consumer]) -> None:
    reader = consumer(SETTINGS._replace(max_poll_records=1))
    reader.subscribe(["t"])
    first = next(batch for _ in range(4) if (batch := reader.poll(POLL_MS)))
    assert [0] == offsets(first)
    reader.pause([T0])
    assert {T0} == reader.paused
    assert [] == read(reader, 3)
    assert 1 == reader.position(T0)
    reader.resume([T0])
    assert [1, 2, 3, 4] == read(reader, 6)


def test_a_consumer_whose_partitions_are_all_paused_waits(
    consumer: Callable[..., Consumer],
) -> None:
    reader = consumer()
    reader.subscribe(["t"])
    read(reader)
    reader.pause([T0, T1])
    # The fetches that were under way come back first.
    read(reader, 2)
    clock = reader._client.clock
    began_ms = clock.monotonic_ms()
    reader.poll(POLL_MS)
    assert began_ms + POLL_MS <= clock.monotonic_ms()


def test_seeks_go_to_an_offset_and_to_both_ends(consumer: Callable[..., Consumer]) -> None:
    reader = consumer()
    reader.subscribe(["t"])
    read(reader)
    reader.seek(T0, 3)
    assert 3 == reader.position(T0)
    assert [3, 4] == read(reader)
    reader.seek_to_beginning([T0])
    assert [0, 1, 2, 3, 4] == read(reader)
    reader.seek_to_beginning([T0])
    reader.seek_to_end([T0])
    assert [] == read(reader)
    assert 5 == reader.position(T0)


def test_a_seek_drops_what_waits(consumer: Callable[..., Consumer]) -> None:
    reader = consumer(SETTINGS._replace(max_poll_records=1))
    reader.subscribe(["t"])
    next(batch for _ in range(4) if (batch := reader.poll(POLL_MS)))
    reader.seek(T0, 4)
    assert [4] == read(reader)


def test_the_listener_hears_of_partitions_before_and_after(
    stage: Stage, consumer: Callable[..., Consumer]
) -> None:
    rebalances = Rebalances()
    reader = consumer()
    reader.subscribe(["t"], rebalances)
    read(reader)
    assert [("assigned", (T0, T1))] == rebalances.calls
    other = consumer()
    other.subscribe(["t"])
    other._group.session._join_group()  # type: ignore[union-attr]
    reader.heartbeat()
    reader.close()
    assert ("revoked", (T0, T1)) == (rebalances.calls[1][0], tuple(sorted(rebalances.calls[1][1])))


def test_a_pattern_takes_topics_as_they_are_made(
    stage: Stage, consumer: Callable[..., Consumer]
) -> None:
    reader = consumer(SETTINGS._replace(metadata_max_age_ms=1_000))
    reader.subscribe(re.compile("t|u.*"))
    assert [0, 1, 2, 3, 4] == read(reader)
    create_topics(stage.client, [NewTopic("upper", 1, 1)])
    stage.cluster.pass_time(2_000)
    read(reader, 2)
    assert ("t", "upper") == reader.subscription
    assert TopicPartition("upper", 0) in reader.assignment
    create_topics(stage.client, [NewTopic("not-upper", 1, 1)])
    stage.cluster.pass_time(2_000)
    read(reader, 2)
    assert ("t", "upper") == reader.subscription


def test_internal_topics_match_no_pattern(stage: Stage, consumer: Callable[..., Consumer]) -> None:
    set_offsets(stage.client, "other", {T0: 1})
    reader = consumer()
    reader.subscribe(re.compile(".*"))
    assert "__consumer_offsets" not in reader.subscription
    delete_groups(stage.client, ["other"])


def test_assigned_partitions_begin_at_what_is_committed_and_commit_without_membership(
    stage: Stage, consumer: Callable[..., Consumer]
) -> None:
    set_offsets(stage.client, "g", {T0: 3})
    reader = consumer()
    reader.assign([T0])
    assert [3, 4] == read(reader)
    reader.close()
    assert 5 == committed_offsets(stage.client, "g")[T0]


def test_a_commit_of_assigned_partitions_does_not_wait_behind_a_fetch(
    stage: Stage, consumer: Callable[..., Consumer]
) -> None:
    reader = consumer(SETTINGS._replace(fetch=FetchOptions(max_wait_ms=10_000)))
    reader.assign([T0])
    assert [0, 1, 2, 3, 4] == read(reader, 2)
    began_ms = stage.cluster.clock.monotonic_ms()
    reader.commit()
    assert stage.cluster.clock.monotonic_ms() - began_ms < 1_000
    assert 5 == committed_offsets(stage.client, "g")[T0]


def test_without_a_group_partitions_are_read_and_nothing_is_committed(
    stage: Stage, consumer: Callable[..., Consumer]
) -> None:
    reader = consumer(ConsumerSettings(auto_offset_reset="earliest", fetch=SETTINGS.fetch))
    reader.assign([T0])
    assert [0, 1, 2, 3, 4] == read(reader)
    with pytest.raises(NoGroup, match="commit needs a group id"):
        reader.commit()
    with pytest.raises(NoGroup):
        reader.subscribe(["t"])
    assert reader.heartbeat() is None
    reader.close()
    assert {} == committed_offsets(stage.client, "g")


def test_the_latest_reset_begins_at_the_end(
    stage: Stage, consumer: Callable[..., Consumer]
) -> None:
    reader = consumer(SETTINGS._replace(auto_offset_reset="latest"))
    reader.assign([T0])
    assert [] == read(reader)
    stage.cluster.produce(1, 1, key=T0)
    assert [5] == read(reader)


def test_without_a_reset_a_partition_needs_an_offset(consumer: Callable[..., Consumer]) -> None:
    reader = consumer(SETTINGS._replace(auto_offset_reset="none"))
    with pytest.raises(NoOffset, match="t-0 has no offset"):
        reader.assign([T0])
    with pytest.raises(UnknownReset):
        consumer(SETTINGS._replace(auto_offset_reset="newest"))


def test_an_offset_out_of_range_is_reset_or_raised(consumer: Callable[..., Consumer]) -> None:
    reader = consumer()
    reader.assign([T0])
    reader.seek(T0, 99)
    assert [0, 1, 2, 3, 4] == read(reader)
    strict = consumer(SETTINGS._replace(auto_offset_reset="none"))
    strict._settings = strict._settings._replace(auto_offset_reset="earliest")
    strict.assign([T0])
    strict._settings = strict._settings._replace(auto_offset_reset="none")
    strict.seek(T0, 99)
    with pytest.raises(ApiError, match="OFFSET_OUT_OF_RANGE"):
        read(strict)


def test_partitions_of_others_cannot_be_moved_or_paused(consumer: Callable[..., Consumer]) -> None:
    reader = consumer()
    reader.assign([T0])
    for action in (
        lambda: reader.seek(T1, 0),
        lambda: reader.pause([T1]),
        lambda: reader.resume([T1]),
        lambda: reader.position(T1),
        lambda: reader.seek_to_end([T1]),
    ):
        with pytest.raises(NotAssigned, match="t-1 is not assigned"):
            action()


def test_heartbeats_between_polls_keep_the_member(
    stage: Stage, consumer: Callable[..., Consumer]
) -> None:
    reader = consumer()
    reader.subscribe(["t"])
    read(reader)
    for _ in range(6):
        wait_ms = reader.heartbeat()
        assert wait_ms is not None
        stage.cluster.pass_time(wait_ms)
    assert 1 == len(describe_group(stage.client, "g").members)
    assert 10_000 < 6 * MEMBER.heartbeat_interval_ms


def test_a_heartbeat_does_not_wait_for_a_coordinator_that_cannot_be_reached(
    stage: Stage, consumer: Callable[..., Consumer], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = consumer()
    reader.subscribe(["t"])
    read(reader)
    client = reader._client
    stage.cluster.pass_time(MEMBER.heartbeat_interval_ms)

    def refused(*_: object) -> None:
        raise Unreachable("here", 1, "refused")

    monkeypatch.setattr(client._coordinators, "address", refused)
    began_ms = client.clock.monotonic_ms()
    with pytest.raises(Unreachable):
        reader.heartbeat()
    assert client.clock.monotonic_ms() < began_ms + 100


def test_heartbeats_keep_a_member_that_processes_records_while_others_join(
    stage: Stage, consumer: Callable[..., Consumer]
) -> None:
    reader = consumer()
    reader.subscribe(["t"])
    read(reader)
    # Another member joins: its response waits for this one, for max.poll.interval.ms.
    joining = stage.new_client()
    session = GroupSession(joining, MEMBER._replace(session_timeout_ms=30_000), ["t"])
    assert session._join_group() is None
    joining.connections.submit(joining.coordinator("g"), join_of(session), object(), 60_000)
    joining.connections.wait(0)
    # Longer than the session time-out: its own is over, unless it heartbeats.
    for _ in range(5):
        assert reader.heartbeat() is not None
        stage.cluster.pass_time(MEMBER.heartbeat_interval_ms)
    assert 2 == len(describe_group(stage.client, "g").members)
    reader.commit()
    assert 5 == committed_offsets(stage.client, "g")[T0]


def join_of(session: GroupSession) -> Call:
    """Return the JoinGroup of a member that has an id."""
    of = messages.JoinGroupRequest
    request = of(
        group_id="g",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=MEMBER.max_poll_interval_ms,
        member_id=session.member_id,
        protocol_type="consumer",
        protocols=[
            of.JoinGroupRequestProtocol(name=name, metadata=session._metadata(name))
            for name in MEMBER.assignors
        ],
    )
    return Call("JoinGroup", request)


def test_a_member_that_gave_partitions_up_heartbeats_until_it_joins_again(
    stage: Stage, consumer: Callable[..., Consumer]
) -> None:
    reader = consumer()
    reader.subscribe(["t"])
    read(reader)
    assert reader._group is not None
    session = reader._group.session
    assert isinstance(session, GroupSession)
    session._owes_rebalance = True
    for _ in range(5):
        wait_ms = reader.heartbeat()
        stage.cluster.pass_time(MEMBER.heartbeat_interval_ms)
        assert wait_ms
    assert 1 == len(describe_group(stage.client, "g").members)


def test_a_topic_that_has_grown_between_polls_is_found_by_the_next_poll(
    stage: Stage, consumer: Callable[..., Consumer]
) -> None:
    create_topics(stage.client, [NewTopic("v", 1, 1)])
    reader = consumer(SETTINGS._replace(member=MEMBER._replace(metadata_max_age_ms=3_000)))
    reader.subscribe(["v"])
    read(reader, 2)
    create_partitions(stage.client, {"v": NewPartitions(2)})
    stage.cluster.pass_time(3_000)
    reader.heartbeat()
    reader.poll(0)
    assert {TopicPartition("v", 0), TopicPartition("v", 1)} == reader.assignment


def test_a_member_that_polls_too_seldom_leaves_and_the_next_poll_joins_again(
    stage: Stage, consumer: Callable[..., Consumer]
) -> None:
    reader = consumer()
    reader.subscribe(["t"])
    read(reader)
    waited_ms = 0
    while (wait_ms := reader.heartbeat()) is not None:
        stage.cluster.pass_time(wait_ms)
        waited_ms += wait_ms
    assert waited_ms > MEMBER.max_poll_interval_ms
    assert () == describe_group(stage.client, "g").members
    read(reader, 2)
    assert 1 == len(describe_group(stage.client, "g").members)


def test_a_new_subscription_takes_the_place_of_the_one_before(
    stage: Stage, consumer: Callable[..., Consumer]
) -> None:
    create_topics(stage.client, [NewTopic("v", 1, 1)])
    reader = consumer()
    reader.subscribe(["t"])
    read(reader)
    reader.subscribe(["v"])
    read(reader, 2)
    assert {TopicPartition("v", 0)} == reader.assignment
    reader.unsubscribe()
    assert (frozenset(), ()) == (reader.assignment, reader.subscription)
    assert [] == reader.poll(0)
    assert EARLIEST == -2
