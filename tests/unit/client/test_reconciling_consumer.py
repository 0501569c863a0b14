"""A consumer whose broker assigns: records of the brokers in memory, a scripted coordinator."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast

import pytest

from engine.client.blocking import KafkaClient
from engine.client.consumer import Consumer
from engine.client.consumer_group_session import ConsumerGroupSession
from engine.client.consumer_heartbeat import NoConsumerProtocol, SubscriptionPattern
from engine.client.member_session import MemberSettings, NotAMember
from engine.client.topic_admin import NewPartitions, create_partitions
from engine.errors import ApiError
from engine.host.memory import SeededEntropy
from engine.kafka_errors import (
    FENCED_MEMBER_EPOCH,
    GROUP_AUTHORIZATION_FAILED,
    STALE_MEMBER_EPOCH,
    UNSUPPORTED_ASSIGNOR,
)
from engine.model import TopicPartition
from tests.unit.client.consumer_coordinator import INTERVAL_MS, ConsumerCoordinator, GroupClient
from tests.unit.client.test_consumer import POLL_MS, SETTINGS, Rebalances, read
from tests.unit.client.test_group_consumer import T0, T1, Stage

MEMBER = MemberSettings("g", max_poll_interval_ms=20_000, group_protocol="consumer")


class Group:
    """A stage whose groups a scripted coordinator has."""

    def __init__(self) -> None:
        self.stage = Stage()
        topic = self.stage.client.view(["t"]).topics["t"]
        self.coordinator = ConsumerCoordinator({"t": (topic.topic_id, 2)})
        self.listeners: list[Rebalances] = []
        self.entropy = SeededEntropy(1)

    def consumer(self, member: MemberSettings = MEMBER) -> Consumer:
        bare = self.stage.new_client()
        bare.entropy = self.entropy
        client = cast(KafkaClient, GroupClient(bare, self.coordinator))
        consumer = Consumer(client, SETTINGS._replace(member=member))
        self.listeners.append(Rebalances())
        consumer.subscribe(["t"], self.listeners[-1])
        return consumer

    def pass_interval(self) -> None:
        self.stage.cluster.pass_time(INTERVAL_MS)


@pytest.fixture
def group() -> Group:
    return Group()


def settle(group: Group, *consumers: Consumer) -> None:
    for _ in range(4):
        group.pass_interval()
        for consumer in consumers:
            consumer.poll(POLL_MS)


def test_a_member_alone_reads_all_commits_and_leaves(group: Group) -> None:
    reader = group.consumer()
    assert [0, 1, 2, 3, 4] == read(reader)
    assert {T0, T1} == reader.assignment
    assert 5 == reader.position(T0)
    reader.close()
    assert 5 == group.coordinator.offsets[T0]
    assert {} == group.coordinator.members
    assert -1 == group.coordinator.heartbeats[-1].member_epoch
    (listener,) = group.listeners
    assert ["assigned", "revoked"] == [name for name, _ in listener.calls]


def test_a_member_that_comes_later_goes_on_where_the_first_has_committed(group: Group) -> None:
    first = group.consumer()
    assert [0, 1, 2, 3, 4] == read(first)
    second = group.consumer()
    settle(group, first, second)
    assert 1 == len(first.assignment) == len(second.assignment)
    assert {T0, T1} == first.assignment | second.assignment
    # What the first gave up was committed before.
    (name, given_up) = group.listeners[0].calls[1]
    assert ("revoked", 1) == (name, len(given_up))
    if T0 in second.assignment:
        assert 5 == group.coordinator.offsets[T0]
        assert 5 == second.position(T0)


def test_the_commit_before_partitions_are_given_up_is_in_the_old_epoch(group: Group) -> None:
    first = group.consumer()
    read(first)
    group.coordinator.requests.clear()
    group.consumer().poll(POLL_MS)
    group.pass_interval()
    first.poll(POLL_MS)
    names = [r.message_name for r in group.coordinator.requests]
    commit = names.index("OffsetCommitRequest")
    acknowledged = [
        place
        for place, r in enumerate(group.coordinator.requests)
        if r.message_name == "ConsumerGroupHeartbeatRequest"
        and r.member_epoch > 0
        and r.topic_partitions is not None
    ]
    assert commit < acknowledged[0]


def test_a_member_that_is_fenced_as_it_commits_for_a_new_target_joins_again(group: Group) -> None:
    first = group.consumer()
    read(first)
    group.consumer().poll(POLL_MS)
    group.pass_interval()
    # The heartbeat brings a target, the commit is of a stale epoch, and the next one is fenced.
    group.coordinator.commit_codes.append(STALE_MEMBER_EPOCH)
    group.coordinator.codes.extend([0, FENCED_MEMBER_EPOCH])
    first.poll(POLL_MS)
    assert ["assigned", "revoked", "assigned"] == [n for n, _ in group.listeners[0].calls]
    assert 0 == len(group.coordinator.codes)
    assert first.assignment


def test_a_target_that_is_taken_back_while_the_member_commits_changes_nothing(
    group: Group,
) -> None:
    first, second = group.consumer(), group.consumer()
    read(first)
    second.poll(POLL_MS)
    group.pass_interval()
    group.coordinator.commit_codes.append(STALE_MEMBER_EPOCH)
    first_session = first._group.session  # type: ignore[union-attr]
    commit = group.coordinator.commit

    def commit_as_the_other_leaves(request: Any) -> Any:
        group.coordinator.commit = commit  # type: ignore[method-assign]
        second.close()
        return commit(request)

    group.coordinator.commit = commit_as_the_other_leaves  # type: ignore[method-assign]
    first.poll(POLL_MS)
    assert {T0, T1} == first.assignment == set(first_session.partitions)
    assert ["assigned"] == [name for name, _ in group.listeners[0].calls]
    assert 5 == first.position(T0)


def test_an_error_for_good_as_the_member_commits_for_a_new_target_ends_the_poll(
    group: Group,
) -> None:
    first = group.consumer()
    read(first)
    group.consumer().poll(POLL_MS)
    group.pass_interval()
    group.coordinator.commit_codes.append(STALE_MEMBER_EPOCH)
    group.coordinator.codes.extend([0, GROUP_AUTHORIZATION_FAILED])
    with pytest.raises(ApiError, match="GROUP_AUTHORIZATION_FAILED"):
        first.poll(POLL_MS)


class Committing(Rebalances):
    """Commits as partitions are revoked, and notes how many the coordinator sees as owned then."""

    def __init__(self, group: Group, consumer: Consumer) -> None:
        super().__init__()
        self.consumer, self.coordinator = consumer, group.coordinator
        self.owned: list[int] = []

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        super().on_revoked(partitions)
        self.coordinator.commit_codes.append(STALE_MEMBER_EPOCH)
        with suppress(NotAMember):
            self.consumer.commit({T0: 2})
        session = cast(ConsumerGroupSession, self.consumer._group.session)  # type: ignore[union-attr]
        self.owned.append(len(self.coordinator.members[session.member_id].owned))


def test_a_commit_in_a_callback_does_not_acknowledge_what_is_being_given_up(group: Group) -> None:
    first = group.consumer(MEMBER)
    listener = Committing(group, first)
    first.subscribe(["t"], listener)
    read(first)
    settle(group, first)
    group.consumer().poll(POLL_MS)
    group.pass_interval()
    first.poll(POLL_MS)
    assert [2] == listener.owned
    settle(group, first)
    assert 1 == len(first.assignment)
    assert 1 == len([name for name, _ in listener.calls if name == "revoked"])


def test_partitions_of_a_member_that_was_killed_go_to_the_other(group: Group) -> None:
    first, second = group.consumer(), group.consumer()
    settle(group, first, second)
    assert second._group is not None
    group.coordinator.expire(second._group.session.member_id)
    settle(group, first)
    assert {T0, T1} == first.assignment


def test_a_fenced_member_loses_its_partitions_and_gets_them_again_in_one_poll(
    group: Group,
) -> None:
    reader = group.consumer()
    read(reader)
    group.coordinator.codes.append(FENCED_MEMBER_EPOCH)
    group.pass_interval()
    reader.poll(POLL_MS)
    names = [name for name, _ in group.listeners[0].calls]
    assert ["assigned", "revoked", "assigned"] == names
    assert {T0, T1} == reader.assignment
    # Nothing was committed, so the records come again.
    assert 0 <= reader.position(T0)


def test_a_member_whose_partitions_went_to_another_gives_them_up_as_it_hears_of_it(
    group: Group,
) -> None:
    first, second = group.consumer(), group.consumer()
    read(first)
    group.coordinator.expire(first._group.session.member_id)  # type: ignore[union-attr]
    settle(group, second)
    assert {T0, T1} == second.assignment
    first.poll(POLL_MS)
    assert frozenset() == first.assignment
    assert ["assigned", "revoked"] == [name for name, _ in group.listeners[0].calls]


def test_a_topic_that_grows_is_read_on_from_where_it_was(group: Group) -> None:
    reader = group.consumer()
    read(reader)
    create_partitions(group.stage.client, {"t": NewPartitions(3)})
    group.stage.cluster.pass_time(1_000)
    group.coordinator.grow("t", 3)
    settle(group, reader)
    assert 3 == len(reader.assignment)
    assert 5 == reader.position(T0)
    assert ["assigned", "assigned"] == [name for name, _ in group.listeners[0].calls]


def test_a_static_member_comes_back_to_its_partitions(group: Group) -> None:
    static = MEMBER._replace(group_instance_id="one")
    first = group.consumer(static)
    read(first)
    first.close()
    assert -2 == group.coordinator.heartbeats[-1].member_epoch
    again = group.consumer(static)
    read(again)
    assert {T0, T1} == again.assignment
    assert 5 == again.position(T0)


def test_a_member_that_polls_too_seldom_leaves_and_comes_back(group: Group) -> None:
    reader = group.consumer()
    read(reader)
    group.stage.cluster.pass_time(MEMBER.max_poll_interval_ms + 1)
    assert reader.heartbeat() is None
    assert {} == group.coordinator.members
    reader.poll(POLL_MS)
    assert {T0, T1} == reader.assignment


def test_a_pattern_for_brokers_reads_what_they_match(group: Group) -> None:
    reader = group.consumer()
    reader.subscribe(SubscriptionPattern("t|u"))
    assert [0, 1, 2, 3, 4] == read(reader)
    assert ("t|u", ()) == (
        group.coordinator.heartbeats[0].subscribed_topic_regex,
        reader.subscription,
    )


def test_an_assignor_that_the_broker_has_not_is_the_error_of_the_poll(group: Group) -> None:
    group.coordinator.codes.append(UNSUPPORTED_ASSIGNOR)
    reader = group.consumer(MEMBER._replace(remote_assignor="none"))
    with pytest.raises(ApiError, match="UNSUPPORTED_ASSIGNOR"):
        reader.poll(POLL_MS)
    reader.close()


def test_the_embedded_broker_refuses_the_protocol_and_the_error_says_so(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Consumer(group.stage.new_client(), SETTINGS._replace(member=MEMBER))
    reader.subscribe(["t"])
    with pytest.raises(NoConsumerProtocol) as caught:
        reader.poll(POLL_MS)
    assert "group.protocol to classic" in (caught.value.hint or "")
    reader.close()
