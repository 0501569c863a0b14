"""One log directory and one metadata store, served in turn by us and by Kafka 3.9.1.

```
ours    topics of every kind, written and read            stopped cleanly
Kafka   the same records; more written, transactions too  stopped cleanly
ours    the same records, committed ones too; more        killed
Kafka   the same records, after recovery
```
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka import KafkaProducer

from tests.cluster.embedded import EmbeddedCluster
from tests.cluster.java_tools import NO_TOOLS, JavaTools
from tests.cluster.real_kafka import RealKafka, create_topic

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(JavaTools.found() is None, reason=NO_TOOLS),
    pytest.mark.xdist_group("both-ways"),
]

_DEADLINE_S = 30.0
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_SETTINGS = {"log_segment_bytes": "20000", "log_index_interval_bytes": "1000"}
#: The records of each partition as a consumer sees them.
Image = dict[tuple[str, int], list[tuple[Any, ...]]]


class Life(NamedTuple):
    """What each broker served in its turn; of the second also committed records alone."""

    ours: Image
    kafka: Image
    kafka_longer: Image
    kafka_committed: Image
    ours_again: Image
    ours_committed: Image
    ours_longer: Image
    kafka_recovered: Image
    segments: int


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    data = tmp_path_factory.mktemp("both") / "cluster"
    ours = EmbeddedCluster(data)
    kafka = RealKafka(os.environ["KCTL_TEST_KAFKA_LIBS"], data, **_SETTINGS)
    ours.start(**_SETTINGS)
    try:
        yield _life(ours, kafka)
    finally:
        kafka.kill()
        ours.destroy()


def _life(ours: EmbeddedCluster, kafka: RealKafka) -> Life:
    _create(ours.address)
    _write(ours.address, "one")
    first = image(ours.address)
    ours.stop()
    kafka.start()
    second = image(kafka.address)
    _write(kafka.address, "two")
    _write_transactions(kafka.address)
    longer, committed = image(kafka.address), image(kafka.address, committed=True)
    kafka.stop()
    ours.start()
    third, third_committed = image(ours.address), image(ours.address, committed=True)
    _write(ours.address, "three")
    third_longer = image(ours.address)
    _kill(ours)
    segments = len(list((ours.data / "broker-1" / "codec-none-0").glob("*.log")))
    kafka.start()
    recovered = image(kafka.address)
    kafka.stop()
    return Life(
        first,
        second,
        longer,
        committed,
        third,
        third_committed,
        third_longer,
        recovered,
        segments,
    )


def _create(address: str) -> None:
    for codec in _CODECS:
        create_topic(address, f"codec-{codec}", 2)
    create_topic(address, "old")
    create_topic(address, "older")
    create_topic(address, "trimmed")
    create_topic(address, "append-time", message_timestamp_type="LogAppendTime")


def _write(address: str, word: str) -> None:
    """Write to all topics, in every way."""
    for codec in _CODECS:
        for partition in (0, 1):
            settings = {"compression.type": codec, "enable.idempotence": partition == 1}
            _produce(address, f"codec-{codec}", partition, word, **settings)
    _produce(address, "append-time", 0, word)
    _produce(address, "trimmed", 0, word)
    admin = AdminClient({"bootstrap.servers": address})
    end = 200 if word == "one" else 500
    for future in admin.delete_records([TopicPartition("trimmed", 0, end)]).values():
        future.result()
    for topic, api_version in (("old", (0, 10)), ("older", (0, 9))):
        settings = {"api_version": api_version, "compression_type": "gzip"}
        with closing(KafkaProducer(bootstrap_servers=address, **settings)) as producer:
            sent = [producer.send(topic, f"{word} {n}".encode(), partition=0) for n in range(50)]
            for future in sent:
                future.get(_DEADLINE_S)


def _produce(address: str, topic: str, partition: int, word: str, **settings: Any) -> None:
    producer = Producer(
        {"bootstrap.servers": address, "linger.ms": 5, "batch.num.messages": 40, **settings}
    )
    for n in range(300):
        producer.produce(
            topic,
            None if n % 50 == 7 else f"{word} {n} ".encode() * 12,
            key=None if n % 3 else b"key %d" % n,
            headers=[("n", str(n).encode()), ("none", None)],
            partition=partition,
            timestamp=1_700_000_000_000 + n,
        )
    assert producer.flush(_DEADLINE_S) == 0


def _write_transactions(address: str) -> None:
    create_topic(address, "transactions")
    producer = Producer({"bootstrap.servers": address, "transactional.id": "both-ways"})
    producer.init_transactions(_DEADLINE_S)
    for number in range(6):
        producer.begin_transaction()
        for n in range(10):
            producer.produce("transactions", b"%d of %d" % (n, number), partition=0)
        producer.flush(_DEADLINE_S)
        (producer.abort_transaction if number % 2 else producer.commit_transaction)(_DEADLINE_S)


def image(address: str, *, committed: bool = False) -> Image:
    """Return every record of every partition of our topics, by a consumer."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "unused",
            "enable.auto.commit": False,
            "check.crcs": True,
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    topics = consumer.list_topics(timeout=_DEADLINE_S).topics
    found: Image = {
        (name, number): []
        for name, topic in topics.items()
        if not name.startswith("__")
        for number in topic.partitions
    }
    consumer.assign([TopicPartition(name, number, 0) for name, number in found])
    open_partitions = set(found)
    deadline = time.monotonic() + _DEADLINE_S
    while open_partitions:
        assert time.monotonic() < deadline, open_partitions
        for message in consumer.consume(5000, 0.05):
            key = (message.topic(), message.partition())
            if message.error() is not None:
                assert message.error().name() == "_PARTITION_EOF", message.error()
                open_partitions.discard(key)
                continue
            found[key].append(
                (
                    message.offset(),
                    message.key(),
                    message.value(),
                    message.timestamp(),
                    message.headers(),
                )
            )
    consumer.close()
    return found


def _kill(cluster: EmbeddedCluster) -> None:
    (pid,) = cluster.pids
    os.kill(pid, signal.SIGKILL)
    while Path(f"/proc/{pid}").exists():
        time.sleep(0.01)


def test_kafka_serves_what_we_wrote(life: Life) -> None:
    assert life.ours == life.kafka
    sizes = {key: len(records) for key, records in life.ours.items()}
    assert sizes == {
        **{(f"codec-{codec}", number): 300 for codec in _CODECS for number in (0, 1)},
        ("append-time", 0): 300,
        ("old", 0): 50,
        ("older", 0): 50,
        ("trimmed", 0): 100,
    }
    assert life.ours["trimmed", 0][0][0] == 200


def test_we_serve_what_kafka_wrote(life: Life) -> None:
    assert life.kafka_longer == life.ours_again
    assert len(life.ours_again["codec-zstd", 1]) == 600
    assert len(life.ours_again["transactions", 0]) == 60


def test_we_leave_out_what_kafka_aborted(life: Life) -> None:
    assert life.kafka_committed == life.ours_committed
    assert len(life.ours_committed["transactions", 0]) == 30


def test_kafka_recovers_and_serves_what_we_wrote_before_a_kill(life: Life) -> None:
    assert life.ours_longer == life.kafka_recovered
    assert len(life.kafka_recovered["codec-gzip", 0]) == 900
    assert life.segments > 2
