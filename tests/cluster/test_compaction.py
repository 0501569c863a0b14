"""A broker of ours compacts a topic while clients write to it and read from it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.cimpl import NewTopic

from engine.log.cleaner.cleaner_messages import CLEANER_MODULE
from tests.cluster.embedded import EmbeddedCluster

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("compaction")]

_DEADLINE_S = 30.0
_TOPIC = "latest"
_KEY_COUNT = 50
_RECORD_COUNT = 3000


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    cluster = EmbeddedCluster(tmp_path / "cluster")
    cluster.start(log_cleaner_backoff_ms="100")
    yield cluster
    cluster.destroy()


def create_topic(address: str, **settings: str) -> None:
    config = {key.replace("_", "."): value for key, value in settings.items()}
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.create_topics([NewTopic(_TOPIC, 1, 1, config=config)]).values():
        future.result()


def write(address: str, count: int, *, first: int = 0) -> dict[bytes, bytes]:
    """Write records of a few keys; returns the last value of each."""
    producer = Producer({"bootstrap.servers": address, "linger.ms": 2, "batch.num.messages": 20})
    values = {}
    for number in range(first, first + count):
        key, value = b"key %d" % (number % _KEY_COUNT), b"value %d" % number
        values[key] = value
        producer.produce(_TOPIC, key=key, value=value)
        if number % 100 == 99:
            producer.flush()
    producer.flush()
    return values


def read(address: str) -> list[tuple[int, bytes, bytes | None]]:
    """Return (offset, key, value) of all there is."""
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "g", "enable.auto.commit": False}
    )
    partition = TopicPartition(_TOPIC, 0, 0)
    _, end = consumer.get_watermark_offsets(partition, timeout=_DEADLINE_S)
    consumer.assign([partition])
    found = []
    while True:
        message = consumer.poll(1.0)
        if message is None:
            break
        if message.error():
            raise KafkaException(message.error())
        found.append((message.offset(), message.key(), message.value()))
        if message.offset() == end - 1:
            break
    consumer.close()
    return found


def until(claim: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _DEADLINE_S
    while not claim():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def log_bytes(cluster: EmbeddedCluster) -> int:
    folder = cluster.data / "broker-1" / f"{_TOPIC}-0"
    sizes = []
    for path in folder.glob("*.log"):
        # The cleaner renames segments meanwhile.
        with suppress(FileNotFoundError):
            sizes.append(path.stat().st_size)
    return sum(sizes)


def compact(address: str) -> None:
    """Have the topic compacted from now on."""
    entry = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource("topic", _TOPIC, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result()


def test_a_compacted_topic_shrinks_to_the_last_value_of_each_key(
    cluster: EmbeddedCluster,
) -> None:
    create_topic(
        cluster.address,
        cleanup_policy="compact",
        segment_bytes="16384",
        min_cleanable_dirty_ratio="0.01",
    )
    values = write(cluster.address, _RECORD_COUNT)
    until(lambda: log_bytes(cluster) < 16384 + 4 * _KEY_COUNT * 100)
    found = read(cluster.address)
    assert len(found) < _RECORD_COUNT // 2
    assert values == {key: value for _, key, value in found}
    offsets = [offset for offset, _, _ in found]
    assert sorted(offsets) == offsets
    checkpoint = cluster.data / "broker-1" / "cleaner-offset-checkpoint"
    # Written once the new names are durable, a moment after they are there.
    until(checkpoint.exists)
    assert f"{_TOPIC} 0 " in checkpoint.read_text()


def test_a_topic_begins_to_be_compacted_when_its_policy_changes(cluster: EmbeddedCluster) -> None:
    create_topic(cluster.address, segment_bytes="16384", min_cleanable_dirty_ratio="0.01")
    values = write(cluster.address, _RECORD_COUNT)
    before = log_bytes(cluster)
    compact(cluster.address)
    until(lambda: log_bytes(cluster) < before // 2)
    assert values == {key: value for _, key, value in read(cluster.address)}


def test_a_restart_goes_on_with_a_compacted_log(cluster: EmbeddedCluster) -> None:
    create_topic(
        cluster.address,
        cleanup_policy="compact",
        segment_bytes="16384",
        min_cleanable_dirty_ratio="0.01",
    )
    write(cluster.address, _RECORD_COUNT)
    until(lambda: log_bytes(cluster) < 16384 + 4 * _KEY_COUNT * 100)
    cluster.stop()
    cluster.start()
    values = write(cluster.address, 500, first=_RECORD_COUNT)
    found = read(cluster.address)
    assert values == {key: value for _, key, value in found}
    assert found[-1][0] == _RECORD_COUNT + 499


def cleaners_of(pid: int) -> list[int]:
    """Return the processes that clean for a broker."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if CLEANER_MODULE.encode() in words and str(pid).encode() in words:
            found.append(int(path.parent.name))
    return found


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_large_log_is_cleaned_by_a_process_that_ends_with_the_broker(
    cluster: EmbeddedCluster, is_killed: bool
) -> None:
    create_topic(cluster.address, segment_bytes="1048576")
    producer = Producer({"bootstrap.servers": cluster.address})
    for number in range(4000):
        producer.produce(_TOPIC, key=b"key %d" % (number % _KEY_COUNT), value=bytes(1000))
    producer.flush()
    (pid,) = cluster.pids
    compact(cluster.address)
    until(lambda: log_bytes(cluster) < 2 << 20)
    cleaners = cleaners_of(pid)
    assert 1 == len(cleaners)
    if is_killed:
        os.kill(pid, signal.SIGKILL)
    else:
        cluster.stop()
    until(lambda: cleaners_of(pid) == [])
