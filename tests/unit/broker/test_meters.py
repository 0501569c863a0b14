"""The meters of a broker: what counts as in Kafka, and what the rates are made of."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.broker.meters import BrokerMeters
from engine.host.coroutine import drive
from engine.host.memory import ManualClock
from engine.model import TopicPartition
from engine.replication.partition_types import PartitionState
from engine.replication.replica_manager import IsrCounts
from engine.replication.topic_counts import BrokerTopicCounts
from engine.timing.histogram import HistogramReading
from engine.timing.meter import TICK_MS, MeterReading
from engine.wire.codec import message_codec
from tests.broker_meters import GROUP, SETTINGS, STEPS, TOPICS, Request, fetch, produce, raised
from tests.broker_meters import batch as batch_of
from tests.broker_meters import recorded as recorded_counts
from tests.unit.broker.memory_broker import MemoryBroker, MemoryClient, request_frame
from tests.unit.broker.memory_cluster import MemoryCluster
from tests.unit.broker.test_broker import create_topic
from tests.unit.log.writing import sent
from tests.unit.replication.replicas import leader_of

_OF_A_PRODUCE = ("BytesInPerSec", "MessagesInPerSec", "TotalProduceRequestsPerSec")
_TOPICS = "kafka.server:type=BrokerTopicMetrics,name="


@pytest.fixture
def stage() -> Iterator[MemoryBroker]:
    stage = MemoryBroker(**{name.replace(".", "_"): text for name, text in SETTINGS.items()})
    stage.start()
    client = stage.connect()
    for name, (count, configs) in TOPICS.items():
        create_topic(client, name, count, **configs)
    client.ask("FindCoordinator", 4, coordinator_keys=[GROUP])
    stage.pass_time(1_000)
    client.ask("FindCoordinator", 4, coordinator_keys=[GROUP])
    yield stage
    stage.stop()
    assert not stage.faults


def meters(stage: MemoryBroker) -> dict[str, MeterReading]:
    """Return the broker's meters by name."""
    asked = drive(stage.broker.metrics())
    stage.timers.run_until_idle()
    found = asked.result()
    return {name: value for name, value in found if isinstance(value, MeterReading)}


def counts(stage: MemoryBroker) -> dict[str, int]:
    return {name: reading.event_count for name, reading in meters(stage).items()}


def send(stage: MemoryBroker, client: MemoryClient, request: Request) -> None:
    client.send(request_frame(request.name, request.version, request.message))
    stage.pass_time(200)
    assert len(client.frames) == request.is_answered
    client.frames.clear()


def _follow(stage: MemoryBroker, key: TopicPartition) -> None:
    """Let another broker lead a partition."""
    partition = stage.broker.storage.replica_manager.find(key)
    state = PartitionState(2, partition.leader_epoch + 1, (2,), 1, (2, 1))
    stage.broker.storage.leadership.apply_states({key: state})


def test_counts_are_kafkas(stage: MemoryBroker) -> None:
    before, found = counts(stage), {}
    for step in STEPS:
        client = stage.connect()
        for request in step.requests:
            send(stage, client, request)
        after = counts(stage)
        found[step.name] = raised(before, after)
        before = after
    assert recorded_counts() == found


def test_a_topic_has_the_meters_that_have_counted(stage: MemoryBroker) -> None:
    send(stage, stage.connect(), produce(("t", 0, batch_of())))
    found = set(counts(stage))
    assert {f"{_TOPICS}{name},topic=t" for name in _OF_A_PRODUCE} <= found


def test_rates_follow_the_counts_every_five_seconds(stage: MemoryBroker) -> None:
    client, name = stage.connect(), f"{_TOPICS}MessagesInPerSec"
    names = (name, f"{name},topic=t")
    stage.pass_time(TICK_MS)
    for _ in range(10):
        send(stage, client, produce(("t", 0, batch_of())))
    assert [30, 30] == [meters(stage)[name].event_count for name in names]
    assert [0.0, 0.0] == [meters(stage)[name].one_minute_rate for name in names]
    stage.pass_time(TICK_MS)
    all_topics, of_topic = (meters(stage)[name] for name in names)
    # Of 6 messages per second in the last 5 s; the meter of the topic begins with them.
    assert pytest.approx(6 * 0.0799555854) == all_topics.one_minute_rate
    assert 6.0 == of_topic.one_minute_rate
    stage.pass_time(TICK_MS)
    assert pytest.approx(6 * 0.9200444146) == meters(stage)[names[1]].one_minute_rate


def test_a_topic_that_is_led_elsewhere_has_no_counts_of_a_leader(stage: MemoryBroker) -> None:
    client = stage.connect()
    for request in (produce(("old", 0, batch_of())), fetch(("old", 0, 0))):
        send(stage, client, request)
    before = counts(stage)
    _follow(stage, TopicPartition("old", 0))
    after = counts(stage)
    gone = {name for name in before if name not in after}
    of_leader = ("BytesIn", "MessagesIn", "TotalProduceRequests")
    assert {f"{_TOPICS}{name}PerSec,topic=old" for name in of_leader} == gone
    # Those of all topics go on.
    assert {} == raised({name: before[name] for name in after if name in before}, after)


def test_counts_of_a_leader_go_on_while_another_partition_is_led_here() -> None:
    clock, counts = ManualClock(), BrokerTopicCounts()
    meters = BrokerMeters(counts, set, dict, clock)
    first, second = TopicPartition("t", 0), TopicPartition("t", 1)
    for key in (first, second):
        meters.note_role(key, is_leader=True)
    counts.counts_of("t").bytes_in += 7
    meters.note_role(first, is_leader=False)
    assert 7 == counts.counts_of("t").bytes_in
    meters.note_role(second, is_leader=False)
    assert (0, 7) == (counts.counts_of("t").bytes_in, counts.total("bytes_in"))


def test_nothing_is_kept_of_topics_that_came_and_went() -> None:
    counts = BrokerTopicCounts()
    meters = BrokerMeters(counts, set, dict, ManualClock())
    for number in range(3):
        key = TopicPartition(f"t{number}", 0)
        meters.note_role(key, is_leader=True)
        counts.counts_of(key.topic).bytes_in += 7
        list(meters.tick())
        list(meters.metrics())
        meters.note_stopped(key)
    assert ({}, {}, {}) == (counts.by_topic, meters._topics, meters._replicas)
    assert 21 == counts.total("bytes_in")


def test_counts_of_a_deleted_topic_are_gone_and_those_of_all_topics_stay(
    stage: MemoryBroker,
) -> None:
    client = stage.connect()
    send(stage, client, produce(("t", 0, batch_of()), ("old", 0, batch_of())))
    stage.pass_time(TICK_MS)
    client.ask("DeleteTopics", 5, topic_names=["t"], timeout_ms=5000)
    stage.pass_time(1_000)
    found = counts(stage)
    name = f"{_TOPICS}MessagesInPerSec"
    assert (6, 3) == (found[name], found[f"{name},topic=old"])
    assert not [each for each in found if each.endswith(",topic=t")]
    assert "t" not in stage.broker.storage.replica_manager.topic_counts.by_topic
    stage.pass_time(TICK_MS)
    assert 6 == counts(stage)[name]


def test_a_topic_that_is_made_again_at_once_begins_at_0(stage: MemoryBroker) -> None:
    client = stage.connect()
    send(stage, client, produce(("t", 0, batch_of())))
    client.ask("DeleteTopics", 5, topic_names=["t"], timeout_ms=5000)
    stage.pass_time(1_000)
    assert 0 == create_topic(client, "t").error_code
    send(stage, client, produce(("t", 0, batch_of())))
    found, name = counts(stage), f"{_TOPICS}MessagesInPerSec"
    assert (6, 3) == (found[name], found[f"{name},topic=t"])
    stage.pass_time(TICK_MS)
    assert 6 == counts(stage)[name]


def test_counts_of_a_topic_that_is_nowhere_go_with_the_next_tick(stage: MemoryBroker) -> None:
    by_topic = stage.broker.storage.replica_manager.topic_counts
    # As of an append in turns whose topic is deleted meanwhile, or of one that others lead.
    by_topic.counts_of("gone").produces += 1
    before = counts(stage)[f"{_TOPICS}TotalProduceRequestsPerSec"]
    stage.pass_time(TICK_MS)
    assert "gone" not in by_topic.by_topic
    assert before == counts(stage)[f"{_TOPICS}TotalProduceRequestsPerSec"]


def test_a_reading_between_the_steps_of_a_tick_changes_no_rate(stage: MemoryBroker) -> None:
    client = stage.connect()
    for topic in ("old", "t"):
        send(stage, client, produce((topic, 0, batch_of())))
    stage.pass_time(TICK_MS)
    for topic in ("old", "t"):
        send(stage, client, produce((topic, 0, batch_of())))
    ticking = stage.broker.meters.tick()
    next(ticking)
    meters(stage)
    for _ in ticking:
        pass
    found = meters(stage)
    names = [f"{_TOPICS}MessagesInPerSec,topic={topic}" for topic in ("old", "t")]
    assert [pytest.approx(3 / 5)] * 2 == [found[name].one_minute_rate for name in names]


def test_a_reading_behind_a_new_role_changes_no_rate(stage: MemoryBroker) -> None:
    client, name = stage.connect(), f"{_TOPICS}BytesOutPerSec,topic=old"
    send(stage, client, produce(("old", 0, batch_of())))
    send(stage, client, fetch(("old", 0, 0)))
    stage.pass_time(TICK_MS)
    before = meters(stage)[name]
    send(stage, client, fetch(("old", 0, 0)))
    _follow(stage, TopicPartition("old", 0))
    assert before.one_minute_rate == meters(stage)[name].one_minute_rate > 0
    stage.pass_time(TICK_MS)
    assert pytest.approx(before.one_minute_rate) == meters(stage)[name].one_minute_rate


@pytest.mark.parametrize("is_one_process", [True, False])
def test_records_to_followers_are_counted_on_both_sides(*, is_one_process: bool) -> None:
    cluster = MemoryCluster(is_one_process=is_one_process)
    cluster.create_topic(replicas=[(1, 2)])
    cluster.pass_time(2_000)
    size = 0
    for number in range(3):
        appended = cluster.produce(1)
        cluster.pass_time(1_000)
        assert 0 == appended.code(), number
        size += len(sent())
    leader, follower = (cluster.brokers[id_].storage.replica_manager.topic_counts for id_ in (1, 2))
    assert (size, size, 0) == tuple(
        leader.total(name) for name in ("bytes_in", "replication_bytes_out", "bytes_out")
    )
    assert (size, 0) == (follower.total("replication_bytes_in"), follower.total("bytes_in"))
    assert 0 == follower.total("reassignment_bytes_in")


def test_records_to_a_replica_that_is_added_are_those_of_a_reassignment() -> None:
    partition = leader_of((1,))
    partition.become_leader(PartitionState(1, 1, (1,), 1, (1, 2, 3), (3,)))
    for replica_id in (2, 3):
        partition.note_sent_to_follower(replica_id, 10 * replica_id)
    counts_of = partition.counts
    assert (50, 30) == (counts_of.replication_bytes_out, counts_of.reassignment_bytes_out)


def test_a_leader_counts_what_it_expands_and_not_what_the_controller_shrank() -> None:
    cluster = MemoryCluster(is_one_process=False)
    cluster.create_topic(replicas=[(1, 2)])
    cluster.pass_time(2_000)
    cluster.cut_power(2)
    cluster.pass_time(1_000)
    assert (1,) == cluster.stored().isr
    cluster.start(2)
    cluster.pass_time(5_000)
    assert (1, 2) == cluster.stored().isr
    counted = cluster.brokers[1].storage.replica_manager.isr_counts
    assert (1, 0, 0) == (counted.expands, counted.shrinks, counted.failed_updates)


def test_decisions_on_in_sync_sets_are_counted() -> None:
    isr = IsrCounts()
    for before, after in (((1,), (1, 2)), ((1, 2), (1,)), ((1, 2), (1, 2))):
        isr.count_decision(before, after)
    assert (1, 1, 1) == (isr.expands, isr.shrinks, isr.failed_updates)


@pytest.mark.parametrize("version", [8, 9])
def test_bytes_of_requests_are_those_of_their_bodies(stage: MemoryBroker, version: int) -> None:
    """Those of the fast path, from version 9 on, are counted from the frame."""
    request = produce(("t", 0, batch_of()), version=version)
    send(stage, stage.connect(), request)
    is_fast = any(number >> 16 == 0 for number in stage.broker.table.request_metrics.fast)
    assert is_fast == (version == 9)
    asked = drive(stage.broker.metrics())
    stage.timers.run_until_idle()
    name = "kafka.network:type=RequestMetrics,name=RequestBytes,request=Produce"
    reading = dict(asked.result())[name]
    assert isinstance(reading, HistogramReading)
    size = len(message_codec("ProduceRequest", version).encode(request.message))
    assert (1, size, size) == reading[:3]
