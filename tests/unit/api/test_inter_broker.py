"""The controller's requests to a broker, in every version: roles, ends, metadata."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable
from copy import copy
from typing import Any

import pytest

from engine.api.admission import Session, allow_all
from engine.api.exchange import Exchange
from engine.api.leader_and_isr import LeaderAndIsr
from engine.api.promised import HandlerFailed
from engine.api.stop_replica import StopReplica
from engine.api.update_metadata import UpdateMetadata
from engine.broker.broker_timers import BrokerTimers
from engine.errors import ConfigError
from engine.host.memory_network import MemoryTimers
from engine.host.promise import Promise
from engine.host.turns import Line, LoopTurns
from engine.kafka_errors import STALE_CONTROLLER_EPOCH
from engine.limits import ROWS_PER_SHARE, SHARE_MS_MAX
from engine.log.directory.offset_checkpoint import RECOVERY_POINTS, read_offsets
from engine.model import TopicPartition
from engine.replication.metadata_cache import Endpoint, MetadataCache
from engine.wire.codec import message_codec
from engine.wire.structs import message_class
from tests.unit.api.asking import LookedAt
from tests.unit.replication.test_leadership import T0, T1, Stage

EPOCH = 40
TOPIC_ID = bytes(range(16))


def over_the_wire(name: str, version: int, message: Any) -> Any:
    """Return a message as it arrives: only what its version has is left."""
    codec = message_codec(name, version)
    return codec.decode(codec.encode(message))


class Handlers:
    """The three handlers on one broker's partitions."""

    def __init__(self) -> None:
        self.stage = Stage()
        self.loaded: list[str] = []
        self.fails = False
        self.while_loading: Callable[[], None] = lambda: None
        self.cache = MetadataCache(1, "cluster")
        leadership = self.stage.leadership
        self.clock = LookedAt()
        self.timers = MemoryTimers(self.clock)
        turns, line = LoopTurns(self.timers, self.clock), Line(self.timers)
        self.lead = LeaderAndIsr(leadership, lambda: EPOCH, self.load, turns, line)
        self.stop = StopReplica(leadership, lambda: EPOCH, turns, line)
        self.update = UpdateMetadata(leadership, self.cache, lambda: EPOCH, turns, line)

    async def load(self, topics: Iterable[str]) -> None:
        self.loaded += topics
        self.while_loading()
        if self.fails:
            raise ConfigError("the store", "is", "gone")

    def ask(self, name: str, version: int, message: Any) -> Any:
        handler = {"LeaderAndIsr": self.lead, "StopReplica": self.stop}.get(name, self.update)
        exchange = Exchange(Session("peer", allow_all()), 0, version, 1, None, 0)
        request = over_the_wire(f"{name}Request", version, message)
        reply = handler.handle(request, exchange)
        if isinstance(reply, Promise):
            reply = reply.result()
        return over_the_wire(f"{name}Response", version, reply)

    def begin(self, name: str, version: int, message: Any) -> Promise[Any]:
        """Begin what takes more than one turn."""
        handler = {"LeaderAndIsr": self.lead, "StopReplica": self.stop}.get(name, self.update)
        exchange = Exchange(Session("peer", allow_all()), 0, version, 1, None, 0)
        reply = handler.handle(over_the_wire(f"{name}Request", version, message), exchange)
        assert isinstance(reply, Promise)
        return reply


def roles(version: int, *, controller_epoch: int = 1, broker_epoch: int = EPOCH) -> Any:
    request = message_class("LeaderAndIsrRequest")
    states = [
        request.LeaderAndIsrPartitionState(
            topic_name="t" if version < 2 else "",
            partition_index=index,
            controller_epoch=controller_epoch,
            leader=1,
            leader_epoch=5,
            isr=[1],
            replicas=[1, 2],
            adding_replicas=[2] if version >= 3 else [],
            is_new=version >= 1,
        )
        for index in (0, 1)
    ]
    fields: dict[str, Any] = {"controller_id": 1, "controller_epoch": controller_epoch}
    if version >= 2:
        topic = request.LeaderAndIsrTopicState(topic_name="t", partition_states=states)
        if version >= 5:
            topic.topic_id = TOPIC_ID
        fields |= {"topic_states": [topic], "broker_epoch": broker_epoch}
    else:
        fields["ungrouped_partition_states"] = states
    return request(**fields)


def codes_of(version: int, reply: Any) -> list[int]:
    flat = reply.partition_errors
    if version >= 5:
        (topic,) = reply.topics
        assert topic.topic_id == TOPIC_ID
        flat = topic.partition_errors
    return [each.error_code for each in flat]


@pytest.mark.parametrize("version", range(8))
def test_roles_are_taken_in_every_version(version: int) -> None:
    handlers = Handlers()
    reply = handlers.ask("LeaderAndIsr", version, roles(version))
    assert (reply.error_code, codes_of(version, reply)) == (0, [0, 0])
    partition = handlers.stage.replicas.find(T0)
    assert partition.is_leader
    assert (version >= 3) is (partition.adding_replicas == (2,))
    assert handlers.loaded == ["t"]
    assert (handlers.stage.replicas.find(T0).log.topic_id is not None) == (version >= 5)


def test_logs_are_made_for_what_is_led_first_and_in_the_order_of_kafkas_hash_map() -> None:
    handlers = Handlers()
    request = roles(7)
    states = request.topic_states[0].partition_states
    request.topic_states[0].topic_name = "t23"
    states.append(copy(states[0]))
    states[2].partition_index, states[2].leader = 2, 2
    handlers.ask("LeaderAndIsr", 7, request)
    made = [key.partition for key in handlers.stage.replicas.partitions]
    assert made == [1, 0, 2]


def test_an_order_that_takes_long_leaves_the_others_their_turns() -> None:
    handlers = Handlers()
    handlers.clock.step_ms = SHARE_MS_MAX
    reply = handlers.begin("LeaderAndIsr", 7, roles(7))
    seen: list[tuple[int, int]] = []

    def look() -> None:
        if not reply.is_kept:
            seen.append((len(handlers.loaded), len(handlers.stage.replicas.partitions)))
            handlers.timers.call_soon(look)

    look()
    handlers.timers.run_until_idle()
    # What is read of the request, what of it is new, the settings, each partition, the response.
    assert [(0, 0), (1, 0), (1, 1), (1, 2)] == list(dict.fromkeys(seen))
    assert 8 == len(seen)
    assert [0, 0] == codes_of(7, reply.result())
    assert handlers.stage.leadership.is_informed


def test_settings_of_many_topics_are_read_in_several_turns() -> None:
    handlers = Handlers()
    handlers.clock.step_ms = SHARE_MS_MAX
    request = roles(7)
    (topic,) = request.topic_states
    request.topic_states = [
        message_class("LeaderAndIsrRequest").LeaderAndIsrTopicState(
            topic_name=f"t{number:02}", partition_states=topic.partition_states[:1]
        )
        for number in range(2 * ROWS_PER_SHARE)
    ]
    reply = handlers.begin("LeaderAndIsr", 7, request)
    seen: list[int] = []

    def look() -> None:
        if not reply.is_kept:
            seen.append(len(handlers.loaded))
            handlers.timers.call_soon(look)

    look()
    handlers.timers.run_until_idle()
    assert [0, ROWS_PER_SHARE, 2 * ROWS_PER_SHARE] == list(dict.fromkeys(seen))
    assert 2 * ROWS_PER_SHARE == len(reply.result().topics)


def test_nobody_is_informed_before_the_last_partition_is_known() -> None:
    handlers = Handlers()
    handlers.clock.step_ms = SHARE_MS_MAX
    handlers.begin("LeaderAndIsr", 7, roles(7))
    seen: list[bool] = []
    handlers.timers.call_soon(lambda: seen.append(handlers.stage.leadership.is_informed))
    handlers.timers.run_until_idle()
    assert ([False], True) == (seen, handlers.stage.leadership.is_informed)


def test_orders_are_applied_one_after_the_other_though_one_takes_several_turns() -> None:
    handlers = Handlers()
    handlers.clock.step_ms = SHARE_MS_MAX
    replies = [
        handlers.begin("LeaderAndIsr", 7, roles(7)),
        handlers.begin("StopReplica", 3, stopping()),
        handlers.begin("UpdateMetadata", 7, metadata(7)),
    ]
    assert [False] * 3 == [reply.is_kept for reply in replies]
    handlers.timers.run_until_idle()
    assert [0] * 3 == [reply.result().error_code for reply in replies]
    assert {} == handlers.stage.replicas.partitions
    assert "t" in handlers.cache.topics
    # Who comes later waits for nobody.
    handlers.clock.step_ms = 0
    assert handlers.ask("UpdateMetadata", 7, metadata(7)).error_code == 0


def test_a_controller_that_another_follows_between_two_turns_is_refused() -> None:
    handlers = Handlers()
    handlers.clock.step_ms = SHARE_MS_MAX
    reply = handlers.begin("LeaderAndIsr", 7, roles(7))

    def follow() -> None:
        if T0 in handlers.stage.replicas.partitions:
            handlers.stage.leadership.admit(2)
        else:
            handlers.timers.call_soon(follow)

    follow()
    handlers.timers.run_until_idle()
    assert STALE_CONTROLLER_EPOCH == reply.result().error_code
    assert [T0] == list(handlers.stage.replicas.partitions)
    assert not handlers.stage.leadership.is_informed


@pytest.mark.parametrize("name", ["StopReplica", "UpdateMetadata"])
def test_a_fault_of_an_order_that_waited_is_its_own(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    handlers = Handlers()
    handlers.clock.step_ms = SHARE_MS_MAX

    def fails(*_: Any, **__: Any) -> None:
        raise KeyError(name)

    monkeypatch.setattr(handlers.stage.leadership, "stop_replica", fails)
    monkeypatch.setattr(handlers.cache, "commit", fails)
    before = handlers.begin("LeaderAndIsr", 7, roles(7))
    version, order = (3, stopping()) if name == "StopReplica" else (7, metadata(7))
    failing = handlers.begin(name, version, order)
    behind = handlers.begin("LeaderAndIsr", 7, roles(7))
    handlers.timers.run_until_idle()
    assert [0, 0] == codes_of(7, before.result())
    with pytest.raises(HandlerFailed, match=name):
        failing.result()
    assert 0 == behind.result().error_code


@pytest.mark.parametrize("name", ["LeaderAndIsr", "StopReplica", "UpdateMetadata"])
def test_a_controller_is_admitted_before_the_orders_of_the_former_one_end(name: str) -> None:
    handlers = Handlers()
    handlers.clock.step_ms = SHARE_MS_MAX
    former = handlers.begin("LeaderAndIsr", 7, roles(7))
    request = message_class(f"{name}Request")(
        controller_id=2, controller_epoch=2, broker_epoch=EPOCH
    )
    version = 3 if name == "StopReplica" else 7
    later = handlers.begin(name, version, request)
    assert 2 == handlers.stage.leadership.controller_epoch
    # Who is past is refused at once, not when it is its turn.
    request.controller_epoch = 1
    assert STALE_CONTROLLER_EPOCH == handlers.ask(name, version, request).error_code
    handlers.timers.run_until_idle()
    assert STALE_CONTROLLER_EPOCH == former.result().error_code
    assert 0 == later.result().error_code
    assert {} == handlers.stage.replicas.partitions


@pytest.mark.parametrize("name", ["LeaderAndIsr", "StopReplica", "UpdateMetadata"])
def test_an_order_whose_controller_is_followed_while_it_waits_is_refused(name: str) -> None:
    handlers = Handlers()
    handlers.clock.step_ms = SHARE_MS_MAX
    handlers.begin("LeaderAndIsr", 7, roles(7))
    request = message_class(f"{name}Request")(controller_epoch=1, broker_epoch=EPOCH)
    waiting = handlers.begin(name, 3 if name == "StopReplica" else 7, request)
    handlers.stage.leadership.admit(2)
    handlers.timers.run_until_idle()
    assert STALE_CONTROLLER_EPOCH == waiting.result().error_code


def stopping() -> Any:
    request = message_class("StopReplicaRequest")
    states = [
        request.StopReplicaPartitionState(partition_index=index, leader_epoch=6) for index in (0, 1)
    ]
    topic = request.StopReplicaTopicState(topic_name="t", partition_states=states)
    return request(controller_id=1, controller_epoch=1, broker_epoch=EPOCH, topic_states=[topic])


def test_settings_are_loaded_for_what_is_new_only() -> None:
    handlers = Handlers()
    handlers.ask("LeaderAndIsr", 7, roles(7))
    handlers.ask("LeaderAndIsr", 7, roles(7))
    assert handlers.loaded == ["t"]


def test_without_the_settings_of_a_topic_nothing_is_opened() -> None:
    handlers = Handlers()
    handlers.fails = True
    assert handlers.ask("LeaderAndIsr", 7, roles(7)).error_code == -1
    assert not handlers.stage.leadership.hosts_online(T0)


@pytest.mark.parametrize("name", ["LeaderAndIsr", "StopReplica", "UpdateMetadata"])
def test_a_request_for_a_former_life_is_refused(name: str) -> None:
    handlers = Handlers()
    request = message_class(f"{name}Request")(controller_epoch=1, broker_epoch=EPOCH - 1)
    assert handlers.ask(name, 3 if name == "StopReplica" else 6, request).error_code == 77


@pytest.mark.parametrize("name", ["LeaderAndIsr", "StopReplica", "UpdateMetadata"])
def test_a_request_of_a_former_controller_is_refused(name: str) -> None:
    handlers = Handlers()
    handlers.stage.leadership.admit(7)
    request = message_class(f"{name}Request")(controller_epoch=6, broker_epoch=EPOCH)
    assert handlers.ask(name, 3 if name == "StopReplica" else 6, request).error_code == 11


def test_a_controller_that_was_followed_while_settings_were_read_is_refused() -> None:
    handlers = Handlers()
    handlers.while_loading = lambda: handlers.stage.leadership.admit(2)
    assert handlers.ask("LeaderAndIsr", 7, roles(7)).error_code == 11
    assert not handlers.stage.leadership.hosts_online(T0)


def ends(version: int, *, is_deleted: bool) -> Any:
    request = message_class("StopReplicaRequest")
    fields: dict[str, Any] = {"controller_epoch": 1}
    if version >= 1:
        fields["broker_epoch"] = EPOCH
    if version >= 3:
        state = request.StopReplicaPartitionState(
            partition_index=1, leader_epoch=5, delete_partition=is_deleted
        )
        topic = request.StopReplicaTopicState(topic_name="t", partition_states=[state])
        return request(topic_states=[topic], **fields)
    fields["delete_partitions"] = is_deleted
    if version >= 1:
        by_topic = request.StopReplicaTopicV1(name="t", partition_indexes=[1])
        return request(topics=[by_topic], **fields)
    one = request.StopReplicaPartitionV0(topic_name="t", partition_index=1)
    return request(ungrouped_partitions=[one], **fields)


@pytest.mark.parametrize("is_deleted", [False, True])
@pytest.mark.parametrize("version", range(5))
def test_replicas_are_stopped_in_every_version(version: int, is_deleted: bool) -> None:
    handlers = Handlers()
    handlers.stage.lead(T0, T1)
    reply = handlers.ask("StopReplica", version, ends(version, is_deleted=is_deleted))
    (told,) = reply.partition_errors
    assert (told.topic_name, told.partition_index, told.error_code) == ("t", 1, 0)
    assert handlers.stage.leadership.hosts_online(T0)
    assert not handlers.stage.leadership.hosts_online(T1)
    assert (T1 in handlers.stage.logs.logs) == (not is_deleted)


def metadata(version: int) -> Any:
    request = message_class("UpdateMetadataRequest")
    state = request.UpdateMetadataPartitionState(
        topic_name="t" if version < 5 else "",
        partition_index=0,
        controller_epoch=1,
        leader=3,
        leader_epoch=2,
        isr=[3],
        zk_version=4,
        replicas=[3, 1],
        offline_replicas=[1] if version >= 4 else [],
    )
    broker = request.UpdateMetadataBroker(id=3)
    if version == 0:
        broker.v0_host, broker.v0_port = "there", 9093
    else:
        listener = "INTERNAL" if version >= 3 else ""
        broker.endpoints = [
            request.UpdateMetadataEndpoint(
                host="there", port=9093, listener=listener, security_protocol=0
            )
        ]
    fields: dict[str, Any] = {"controller_id": 3, "controller_epoch": 1, "live_brokers": [broker]}
    if version >= 5:
        topic = request.UpdateMetadataTopicState(topic_name="t", partition_states=[state])
        if version >= 7:
            topic.topic_id = TOPIC_ID
        return request(topic_states=[topic], broker_epoch=EPOCH, **fields)
    return request(ungrouped_partition_states=[state], **fields)


@pytest.mark.parametrize("version", range(9))
def test_metadata_is_taken_in_every_version(version: int) -> None:
    handlers = Handlers()
    assert handlers.ask("UpdateMetadata", version, metadata(version)).error_code == 0
    cache = handlers.cache
    listener = "INTERNAL" if version >= 3 else "PLAINTEXT"
    assert cache.controller_id == 3
    assert cache.brokers[3].endpoints == (Endpoint(listener, "there", 9093),)
    found = cache.partition(T0)
    assert found is not None
    assert (found.leader_id, found.replicas, found.partition_epoch) == (3, (3, 1), 4)
    assert found.offline_replicas == ((1,) if version >= 4 else ())
    assert (cache.topic_name(TOPIC_ID) == "t") == (version >= 7)


def test_a_started_broker_names_itself_as_a_leader_once_it_has_its_roles() -> None:
    handlers = Handlers()
    led = metadata(8)
    led.topic_states[0].partition_states[0].leader = 1
    for leader_id in (-1, 1):
        handlers.ask("UpdateMetadata", 8, led)
        found = handlers.cache.partition(T0)
        assert found is not None
        assert (leader_id, (3,)) == (found.leader_id, found.isr)
        handlers.ask("LeaderAndIsr", 7, roles(7))


def test_a_partition_that_is_being_deleted_is_forgotten() -> None:
    handlers = Handlers()
    request = metadata(8)
    handlers.ask("UpdateMetadata", 8, request)
    request.topic_states[0].partition_states[0].leader = -2
    request.controller_id = -1
    handlers.ask("UpdateMetadata", 8, request)
    assert handlers.cache.partition(TopicPartition("t", 0)) is None
    assert handlers.cache.controller_id is None


def test_what_a_full_update_leaves_out_is_forgotten() -> None:
    handlers = Handlers()
    handlers.ask("UpdateMetadata", 8, metadata(8))
    request = metadata(8)
    request.topic_states = []
    handlers.ask("UpdateMetadata", 8, request)
    assert handlers.cache.is_known(T0)
    request.type = 2
    handlers.ask("UpdateMetadata", 8, request)
    assert not handlers.cache.topics


def test_a_full_update_that_comes_again_leaves_what_came_between() -> None:
    handlers = Handlers()
    full = metadata(8)
    full.type, full.topic_states = 2, []
    handlers.ask("UpdateMetadata", 8, full)
    handlers.ask("UpdateMetadata", 8, metadata(8))
    handlers.ask("UpdateMetadata", 8, full)
    assert handlers.cache.is_known(T0)
    full.controller_epoch = 2
    handlers.ask("UpdateMetadata", 8, full)
    assert not handlers.cache.topics


def _seen_by_others(handlers: Handlers, reply: Promise[Any], look: Callable[[], Any]) -> list[Any]:
    """Return what others see between the turns of an order, each once."""
    seen: list[Any] = []

    def again() -> None:
        if not reply.is_kept:
            seen.append(look())
            handlers.timers.call_soon(again)

    again()
    handlers.timers.run_until_idle()
    return list(dict.fromkeys(seen))


def many(count: int) -> Any:
    request = metadata(8)
    (topic,) = request.topic_states
    topic.partition_states = [
        message_class("UpdateMetadataRequest").UpdateMetadataPartitionState(
            partition_index=index, controller_epoch=1, leader=3, leader_epoch=2, isr=[3]
        )
        for index in range(count)
    ]
    return request


def test_an_update_that_takes_several_turns_is_seen_whole_or_not_at_all() -> None:
    handlers = Handlers()
    handlers.ask("UpdateMetadata", 8, many(1))
    before = handlers.cache.topics["t"]
    handlers.clock.step_ms = SHARE_MS_MAX
    reply = handlers.begin("UpdateMetadata", 8, many(5))
    seen = _seen_by_others(
        handlers, reply, lambda: (len(handlers.cache.topics["t"]), handlers.cache.version)
    )
    assert [(1, 1)] == seen
    assert (5, 2) == (len(handlers.cache.topics["t"]), handlers.cache.version)
    # Who began to read it before reads it to its end.
    assert [0] == list(before)


def test_a_full_update_in_several_turns_forgets_what_it_leaves_out_in_one() -> None:
    handlers = Handlers()
    handlers.ask("UpdateMetadata", 8, many(5))
    handlers.clock.step_ms = SHARE_MS_MAX
    full = many(2)
    full.type = 2
    reply = handlers.begin("UpdateMetadata", 8, full)
    assert [5] == _seen_by_others(handlers, reply, lambda: len(handlers.cache.topics["t"]))
    assert [0, 1] == list(handlers.cache.topics["t"])


def test_a_full_update_that_another_controller_ended_is_none() -> None:
    handlers = Handlers()
    handlers.ask("UpdateMetadata", 8, many(5))
    handlers.clock.step_ms = SHARE_MS_MAX
    full = many(2)
    full.type = 2
    reply = handlers.begin("UpdateMetadata", 8, full)
    handlers.stage.leadership.admit(2)
    handlers.timers.run_until_idle()
    assert STALE_CONTROLLER_EPOCH == reply.result().error_code
    assert 5 == len(handlers.cache.topics["t"])


def test_replicas_are_stopped_in_several_turns_and_noted_behind_the_last() -> None:
    handlers = Handlers()
    handlers.stage.lead(T0, T1)
    handlers.clock.step_ms = SHARE_MS_MAX
    request = stopping()
    for state in request.topic_states[0].partition_states:
        state.delete_partition = True
    reply = handlers.begin("StopReplica", 3, request)
    behind = handlers.begin("LeaderAndIsr", 7, roles(7))
    partitions = handlers.stage.replicas.partitions
    seen = _seen_by_others(handlers, reply, lambda: (len(partitions), behind.is_kept))
    assert [(2, False), (1, False), (0, False)] == seen[:3]
    assert {(0, False)} == set(seen[2:])
    assert [0, 0] == [row.error_code for row in reply.result().partition_errors]
    handlers.timers.run_until_idle()
    assert {T0, T1} == set(partitions)


def test_what_a_former_controller_has_deleted_is_noted_though_its_order_ends() -> None:
    handlers = Handlers()
    handlers.stage.lead(T0, T1)
    handlers.stage.logs.checkpoint_recovery_points()
    handlers.clock.step_ms = SHARE_MS_MAX
    request = stopping()
    for state in request.topic_states[0].partition_states:
        state.delete_partition = True
    reply = handlers.begin("StopReplica", 3, request)

    def follow() -> None:
        if handlers.stage.leadership.hosts_online(T0):
            handlers.timers.call_soon(follow)
        else:
            handlers.stage.leadership.admit(2)

    follow()
    handlers.timers.run_until_idle()
    assert STALE_CONTROLLER_EPOCH == reply.result().error_code
    assert [T1] == list(handlers.stage.replicas.partitions)
    assert {T1} == set(written_points(handlers))


def written_points(handlers: Handlers) -> dict[TopicPartition, int]:
    """Return the recovery points of both directories."""
    files = handlers.stage.files
    first, second = (read_offsets(files, f"{path}/{RECOVERY_POINTS}") for path in ("/a", "/b"))
    return {**first, **second}


def test_logs_that_are_closed_during_an_order_leave_their_checkpoints_alone() -> None:
    handlers = Handlers()
    handlers.stage.lead(T0, T1)
    handlers.clock.step_ms = SHARE_MS_MAX
    request = stopping()
    for state in request.topic_states[0].partition_states:
        state.delete_partition = True
    handlers.begin("StopReplica", 3, request)

    def close() -> None:
        if handlers.stage.leadership.hosts_online(T0):
            handlers.timers.call_soon(close)
        else:
            handlers.stage.logs.stop()

    close()
    handlers.timers.run_until_idle()
    assert {T1} == set(written_points(handlers))


def _cut_off_amid_a_deletion(handlers: Handlers) -> int:
    """Let the broker stop with one of two replicas deleted; return how often its disk changed."""
    stage, timers = handlers.stage, BrokerTimers(handlers.timers)
    stage.lead(T0, T1)
    turns = LoopTurns(timers, handlers.clock)
    handlers.stop = StopReplica(stage.leadership, lambda: EPOCH, turns, turns.line())
    handlers.clock.step_ms = SHARE_MS_MAX
    request = stopping()
    for state in request.topic_states[0].partition_states:
        state.delete_partition = True
    reply = handlers.begin("StopReplica", 3, request)

    def cut_off() -> None:
        if stage.leadership.hosts_online(T0):
            handlers.timers.call_soon(cut_off)
        else:
            timers.stop()

    cut_off()
    handlers.timers.run_until_idle()
    assert (False, [T1]) == (reply.is_kept, list(stage.replicas.partitions))
    return stage.files.operations


def test_an_order_that_a_stop_has_cut_off_is_let_go_without_a_trace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    untold: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", untold.append)
    handlers = Handlers()
    stage, before = handlers.stage, _cut_off_amid_a_deletion(handlers)
    del handlers
    gc.collect()
    assert (before, []) == (stage.files.operations, untold)
