"""A member of a group of the consumer protocol: heartbeats, targets, epochs."""

from __future__ import annotations

import itertools
from typing import Any, cast

import pytest

from engine.client.blocking import KafkaClient
from engine.client.consumer_group_session import ConsumerGroupSession
from engine.client.consumer_heartbeat import (
    NoConsumerProtocol,
    SubscriptionPattern,
    new_member_id,
)
from engine.client.errors import Unreachable
from engine.client.group_consumers import create_group_consumer
from engine.client.group_protocol import SettingOfOtherProtocol
from engine.client.member_session import MemberSettings, NotAMember
from engine.client.member_states import VALID_PREVIOUS_STATES, MemberState, MemberStates
from engine.client.settings import ClientSettings
from engine.errors import ApiError
from engine.kafka_errors import (
    COORDINATOR_LOAD_IN_PROGRESS,
    FENCED_MEMBER_EPOCH,
    GROUP_AUTHORIZATION_FAILED,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_MEMBER_ID,
    UNRELEASED_INSTANCE_ID,
    UNSUPPORTED_ASSIGNOR,
    UNSUPPORTED_VERSION,
)
from engine.model import TopicPartition
from tests.client_session import FakeClock
from tests.unit.client.consumer_coordinator import INTERVAL_MS, ConsumerCoordinator, GroupClient

TOPIC_ID, OTHER_ID = bytes([1]) * 16, bytes([2]) * 16
SETTINGS = MemberSettings("g", max_poll_interval_ms=20_000, group_protocol="consumer")
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Entropy:
    """Bytes that differ from call to call."""

    def __init__(self) -> None:
        self._next = itertools.count(1)

    def random_bytes(self, length: int) -> bytes:
        return bytes([next(self._next)]) * length


class BareClient:
    """What a session needs besides its coordinator: a clock, ids, names of topics."""

    def __init__(self, names: dict[bytes, str]) -> None:
        self.clock, self.entropy, self.names = FakeClock(), Entropy(), names
        self.settings = ClientSettings()
        self.asked_ids: list[list[bytes]] = []


class Scene:
    """A coordinator and its members on one clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.coordinator = ConsumerCoordinator({"t": (TOPIC_ID, 2)})
        self.names = {TOPIC_ID: "t", OTHER_ID: "u"}
        self.bare = BareClient(self.names)
        self.client = cast(KafkaClient, GroupClient(cast(KafkaClient, self.bare), self.coordinator))

        def names(client: Any, ids: list[bytes]) -> dict[bytes, str]:
            client.asked_ids.append(list(ids))
            return {key: client.names[key] for key in ids if key in client.names}

        monkeypatch.setattr("engine.client.consumer_group_session.request_topic_names", names)

    def member(
        self, settings: MemberSettings = SETTINGS, topics: Any = ("t",)
    ) -> ConsumerGroupSession:
        return ConsumerGroupSession(self.client, settings, topics)

    def joined(self, settings: MemberSettings = SETTINGS) -> ConsumerGroupSession:
        session = self.member(settings)
        settle(session)
        return session

    def pass_interval(self) -> None:
        self.bare.clock.now_ms += INTERVAL_MS

    @property
    def last(self) -> Any:
        return self.coordinator.heartbeats[-1]


def settle(session: ConsumerGroupSession) -> None:
    """Poll a member as its consumer does, until it is stable."""
    for _ in range(10):
        if session.poll():
            return
        if session.has_lost_all:
            session.rejoin()
        else:
            session.take_target()
            session.acknowledge()
    raise AssertionError(session.states.current)


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


def test_only_transitions_of_the_table_are_made() -> None:
    assert set(MemberState) == set(VALID_PREVIOUS_STATES)
    for before, after in itertools.product(MemberState, MemberState):
        states = MemberStates()
        states.current = before
        if before in VALID_PREVIOUS_STATES[after]:
            states.enter(after)
            assert after is states.current
        else:
            with pytest.raises(AssertionError):
                states.enter(after)


def test_a_member_id_is_a_uuid_as_kafka_prints_it() -> None:
    assert "AQEBAQEBAQEBAQEBAQEBAQ" == new_member_id(bytes([1]) * 16)


def test_the_first_heartbeat_says_everything_and_the_acknowledgement_what_is_owned(
    scene: Scene,
) -> None:
    settings = SETTINGS._replace(remote_assignor="range", client_rack="r1")
    session = scene.member(settings)
    assert not session.poll()
    (first,) = scene.coordinator.heartbeats
    assert (0, ["t"], "range", "r1", 20_000, []) == (
        first.member_epoch,
        first.subscribed_topic_names,
        first.server_assignor,
        first.rack_id,
        first.rebalance_timeout_ms,
        first.topic_partitions,
    )
    assert "" != first.member_id == session.member_id
    assert (T0, T1) == session.take_target()
    session.acknowledge()
    assert MemberState.ACKNOWLEDGING is session.states.current
    assert session.poll()
    assert MemberState.STABLE is session.states.current
    second = scene.last
    assert (1, None, None, -1) == (
        second.member_epoch,
        second.subscribed_topic_names,
        second.server_assignor,
        second.rebalance_timeout_ms,
    )
    assert [(TOPIC_ID, [0, 1])] == [(r.topic_id, r.partitions) for r in second.topic_partitions]


def test_heartbeats_leave_as_often_as_the_response_says_and_are_short(scene: Scene) -> None:
    session = scene.joined()
    count = len(scene.coordinator.heartbeats)
    assert session.poll()
    assert (count, INTERVAL_MS) == (len(scene.coordinator.heartbeats), session.time_left_ms())
    scene.pass_interval()
    assert session.poll()
    assert count + 1 == len(scene.coordinator.heartbeats)
    assert (None, None) == (scene.last.topic_partitions, scene.last.subscribed_topic_names)


def test_a_partition_goes_to_a_new_member_after_its_owner_has_given_it_up(scene: Scene) -> None:
    first, second = scene.joined(), scene.joined()
    assert ((T0, T1), ()) == (first.partitions, second.partitions)
    scene.pass_interval()
    assert not first.poll()
    # It may still commit in its epoch.
    first.commit({T1: 5})
    kept = set(first.take_target())
    assert kept == first.kept_partitions
    assert 1 == len(kept)
    first.acknowledge()
    scene.pass_interval()
    assert second.poll()
    settle(first)
    scene.pass_interval()
    settle(second)
    assert {T0, T1} == {*first.partitions, *second.partitions}
    assert scene.coordinator.group_epoch == first.member_epoch == second.member_epoch


@pytest.mark.parametrize("code", [FENCED_MEMBER_EPOCH, UNKNOWN_MEMBER_ID])
def test_a_fenced_member_joins_again_with_epoch_0_and_its_id(scene: Scene, code: int) -> None:
    session = scene.joined()
    member_id = session.member_id
    scene.coordinator.codes.append(code)
    scene.pass_interval()
    assert not session.poll()
    assert session.has_lost_all and not session.is_joined
    assert -1 == session.generation_id
    # Nothing is sent until the partitions are given up.
    count = len(scene.coordinator.heartbeats)
    assert not session.poll()
    assert count == len(scene.coordinator.heartbeats)
    session.rejoin()
    assert () == session.partitions
    settle(session)
    joins = [h for h in scene.coordinator.heartbeats if h.member_epoch == 0]
    assert [(member_id, ["t"])] * 2 == [(j.member_id, j.subscribed_topic_names) for j in joins]
    assert ((T0, T1), frozenset()) == (session.partitions, session.kept_partitions)


@pytest.mark.parametrize(
    "code", [UNRELEASED_INSTANCE_ID, UNSUPPORTED_ASSIGNOR, GROUP_AUTHORIZATION_FAILED]
)
def test_an_error_that_joining_does_not_help_ends_the_member(scene: Scene, code: int) -> None:
    session = scene.member()
    scene.coordinator.codes.append(code)
    for _ in range(2):
        with pytest.raises(ApiError, match=f"refused by {code}"):
            session.poll()
    assert MemberState.FATAL is session.states.current
    assert 1 == len(scene.coordinator.heartbeats)
    session.leave()
    assert 1 == len(scene.coordinator.heartbeats)


@pytest.mark.parametrize("code", [TOPIC_AUTHORIZATION_FAILED, COORDINATOR_LOAD_IN_PROGRESS])
def test_an_error_that_may_pass_ends_one_poll_and_the_next_heartbeat_says_all(
    scene: Scene, code: int
) -> None:
    session = scene.joined()
    scene.coordinator.codes.append(code)
    scene.pass_interval()
    with pytest.raises(ApiError):
        session.poll()
    scene.pass_interval()
    assert session.poll()
    assert (["t"], 20_000) == (
        scene.last.subscribed_topic_names,
        scene.last.rebalance_timeout_ms,
    )
    assert [(TOPIC_ID, [0, 1])] == [(r.topic_id, r.partitions) for r in scene.last.topic_partitions]


def test_a_coordinator_that_cannot_be_reached_is_asked_again_after_a_back_off(
    scene: Scene,
) -> None:
    session = scene.joined()
    scene.pass_interval()
    scene.coordinator.codes.append(Unreachable("here", 1, "refused"))
    with pytest.raises(Unreachable):
        session.poll()
    # Meanwhile polls read its partitions.
    assert scene.bare.settings.retry_backoff_ms_max == session.time_left_ms()
    assert session.poll()
    assert {T0, T1} == set(session.partitions)


def test_a_cluster_without_the_protocol_is_named_as_such(scene: Scene) -> None:
    scene.coordinator.codes.append(UNSUPPORTED_VERSION)
    with pytest.raises(NoConsumerProtocol, match="does not support the consumer protocol"):
        scene.member().poll()


def test_a_pattern_is_sent_where_the_broker_has_it(scene: Scene) -> None:
    session = scene.member(topics=SubscriptionPattern("t.*"))
    settle(session)
    first = scene.coordinator.heartbeats[0]
    assert ("t.*", []) == (first.subscribed_topic_regex, first.subscribed_topic_names)
    assert (T0, T1) == session.partitions
    session.subscribe(("t",))
    settle(session)
    assert ("", ["t"]) == (scene.last.subscribed_topic_regex, scene.last.subscribed_topic_names)


def test_a_pattern_that_was_left_is_taken_back_until_the_coordinator_has_answered(
    scene: Scene,
) -> None:
    session = scene.member(topics=SubscriptionPattern("t.*"))
    settle(session)
    session.subscribe(("t",))
    scene.coordinator.codes.append(COORDINATOR_LOAD_IN_PROGRESS)
    with pytest.raises(ApiError):
        session.poll()
    scene.pass_interval()
    settle(session)
    assert scene.coordinator.members[session.member_id].pattern is None


def test_names_take_back_the_pattern_that_a_static_member_had_before(scene: Scene) -> None:
    settings = SETTINGS._replace(group_instance_id="one")
    before = scene.member(settings, SubscriptionPattern("t.*"))
    settle(before)
    before.leave()
    again = scene.joined(settings)
    assert scene.coordinator.members[again.member_id].pattern is None


def test_a_pattern_is_refused_where_the_broker_has_version_0(scene: Scene) -> None:
    scene.coordinator.highest_version = 0
    with pytest.raises(NoConsumerProtocol, match="patterns that brokers match"):
        scene.member(topics=SubscriptionPattern("t.*")).poll()
    settle(scene.member())
    assert {None} == {request.subscribed_topic_regex for request in scene.coordinator.heartbeats}


@pytest.mark.parametrize("topics", [("t",), SubscriptionPattern("t.*")])
def test_a_cluster_that_does_not_know_the_heartbeat_lacks_the_protocol(
    scene: Scene, topics: Any
) -> None:
    scene.coordinator.highest_version = -1
    with pytest.raises(NoConsumerProtocol, match="does not support the consumer protocol"):
        scene.member(topics=topics).poll()


def test_a_fenced_member_leaves_without_a_heartbeat(scene: Scene) -> None:
    session = scene.joined()
    scene.coordinator.codes.append(FENCED_MEMBER_EPOCH)
    scene.pass_interval()
    assert not session.poll()
    count = len(scene.coordinator.heartbeats)
    session.leave()
    assert (MemberState.UNSUBSCRIBED, ()) == (session.states.current, session.partitions)
    assert count == len(scene.coordinator.heartbeats)


def test_another_subscription_is_sent_at_once(scene: Scene) -> None:
    session = scene.joined()
    scene.coordinator.topics["u"] = (OTHER_ID, 1)
    session.subscribe(("t", "u"))
    settle(session)
    assert TopicPartition("u", 0) in session.partitions
    assert {T0, T1} == session.kept_partitions


def test_partitions_of_a_topic_without_a_name_wait_for_it(scene: Scene) -> None:
    del scene.names[OTHER_ID]
    scene.coordinator.topics["u"] = (OTHER_ID, 1)
    session = scene.member(topics=("t", "u"))
    settle(session)
    assert (T0, T1) == session.partitions
    asked = len(scene.bare.asked_ids)
    assert session.poll()
    assert asked == len(scene.bare.asked_ids)
    scene.names[OTHER_ID] = "u"
    scene.bare.clock.now_ms += 1_000
    settle(session)
    assert (T0, T1, TopicPartition("u", 0)) == session.partitions


def test_a_topic_that_was_made_again_is_another_one(scene: Scene) -> None:
    session = scene.joined()
    scene.names[OTHER_ID] = "t"
    scene.coordinator.topics["t"] = (OTHER_ID, 2)
    scene.coordinator.group_epoch += 1
    for _ in range(4):
        scene.pass_interval()
        settle(session)
    assert ((T0, T1), frozenset()) == (session.partitions, session.kept_partitions)


def test_a_commit_has_the_member_epoch_and_learns_of_a_newer_one(scene: Scene) -> None:
    session = scene.joined()
    session.commit({T0: 3})
    assert (session.member_id, 1) == (
        scene.coordinator.requests[-1].member_id,
        scene.coordinator.requests[-1].generation_id_or_member_epoch,
    )
    # Another member came: the coordinator has told of a new epoch, and the response was lost.
    scene.coordinator.group_epoch = scene.coordinator.members[session.member_id].epoch = 2
    scene.coordinator.takes_epoch_before = True
    session.commit({T0: 4})
    assert {T0: 4} == scene.coordinator.offsets
    assert 2 == session.member_epoch


def test_a_commit_of_a_member_that_was_removed_is_refused(scene: Scene) -> None:
    session = scene.joined()
    scene.coordinator.expire(session.member_id)
    with pytest.raises(NotAMember):
        session.commit({T0: 3})
    # It asks at once where it is.
    assert 0 == session.time_left_ms()
    assert not session.poll()
    assert session.has_lost_all


def test_offsets_are_fetched_as_the_member_of_an_epoch(scene: Scene) -> None:
    session = scene.joined()
    session.commit({T0: 3})
    assert {T0: 3} == session.committed([T0, T1])
    (group,) = scene.coordinator.requests[-1].groups
    assert (session.member_id, 1) == (group.member_id, group.member_epoch)


def test_offsets_are_fetched_again_in_the_epoch_that_a_heartbeat_brings(scene: Scene) -> None:
    session = scene.joined()
    session.commit({T0: 3})
    scene.coordinator.group_epoch = scene.coordinator.members[session.member_id].epoch = 2
    scene.coordinator.takes_epoch_before = True
    assert {T0: 3} == session.committed([T0])
    assert 2 == session.member_epoch


def test_a_member_whose_offsets_are_refused_learns_at_the_next_poll_where_it_is(
    scene: Scene,
) -> None:
    session = scene.joined()
    scene.coordinator.expire(session.member_id)
    with pytest.raises(ApiError, match="UNKNOWN_MEMBER_ID"):
        session.committed([T0])
    assert not session.poll()
    assert session.has_lost_all


def test_a_member_leaves_with_epoch_minus_1_and_a_static_one_with_minus_2(scene: Scene) -> None:
    session = scene.joined()
    session.leave()
    assert (-1, None) == (scene.last.member_epoch, scene.last.instance_id)
    assert (MemberState.UNSUBSCRIBED, ()) == (session.states.current, session.partitions)
    static = scene.joined(SETTINGS._replace(group_instance_id="one"))
    static.leave()
    assert (-2, "one") == (scene.last.member_epoch, scene.last.instance_id)
    again = scene.joined(SETTINGS._replace(group_instance_id="one"))
    assert (T0, T1) == again.partitions


def test_an_instance_id_that_is_in_use_is_refused(scene: Scene) -> None:
    settings = SETTINGS._replace(group_instance_id="one")
    scene.joined(settings)
    with pytest.raises(ApiError) as caught:
        scene.member(settings).poll()
    assert UNRELEASED_INSTANCE_ID == caught.value.code


def test_a_member_that_did_not_poll_is_stale_until_it_does(scene: Scene) -> None:
    session = scene.joined()
    session.leave_until_polled()
    assert (MemberState.STALE, -1) == (session.states.current, scene.last.member_epoch)
    assert not session.poll()
    assert session.has_lost_all
    session.rejoin()
    settle(session)
    assert (T0, T1) == session.partitions


def test_settings_of_the_other_protocol_are_refused_as_java_does(scene: Scene) -> None:
    def refused(settings: MemberSettings) -> str:
        with pytest.raises(SettingOfOtherProtocol) as caught:
            create_group_consumer(scene.client, settings, ["t"], start_of=lambda _: {})
        return str(caught.value)

    assert (
        "partition.assignment.strategy, session.timeout.ms cannot be set when "
        "group.protocol=CONSUMER"
    ) == refused(SETTINGS._replace(assignors=("range",), session_timeout_ms=9_000))
    assert "heartbeat.interval.ms cannot be set when group.protocol=CONSUMER" == refused(
        SETTINGS._replace(heartbeat_interval_ms=1)
    )
    assert "group.remote.assignor cannot be set when group.protocol=CLASSIC" == refused(
        MemberSettings("g", remote_assignor="range")
    )
    with pytest.raises(NoConsumerProtocol, match=r"group\.protocol=classic"):
        create_group_consumer(
            scene.client, MemberSettings("g"), SubscriptionPattern("t"), start_of=lambda _: {}
        )
