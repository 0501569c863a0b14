"""What clients do to a broker under measurement, by librdkafka."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.perf.librdkafka import BatchConsumer, BatchProducer, Failed

_PIPELINED_REQUESTS = 40_000
_SYNC_REQUESTS = 4_000
_IN_FLIGHT = 16
_FLUSH_S = 120.0


class Load(NamedTuple):
    """Records that are produced."""

    value_bytes: int
    batch_bytes: int
    codec: str = "none"


class Broker(NamedTuple):
    """Where a broker listens, and what tells the CPU seconds that it has used.

    Of a cluster: any of its brokers, and all of their seconds. `acks` is what producers ask for,
    `client` has settings of all clients, as those of TLS.
    """

    address: str
    cpu_s: Callable[[], float]
    replicas: int = 1
    acks: str = "1"
    client: tuple[tuple[str, str], ...] = ()

    @property
    def client_settings(self) -> dict[str, Any]:
        """Return the settings by which clients reach the broker."""
        return {"bootstrap.servers": self.address, **dict(self.client)}


class Outcome(NamedTuple):
    """A figure with its unit, and the broker's CPU: seconds a GB, or µs a request."""

    figure: float
    unit: str
    cpu: float


def _values(size: int) -> list[bytes]:
    """Return values that compress as text does, to about a third."""
    words = [os.urandom(6).hex().encode() for _ in range(64)]
    values = []
    for n in range(64):
        text = b" ".join(words[(n * 7 + k * k) % 64] for k in range(size // 8 + 1))
        values.append(text[:size])
    return values


class _Topic:
    """A topic of one partition, for one run."""

    def __init__(self, broker: Broker) -> None:
        self._admin = AdminClient(broker.client_settings)
        self._replicas = broker.replicas
        self.name = f"perf-{time.monotonic_ns()}"

    def __enter__(self) -> str:
        topic = NewTopic(self.name, num_partitions=1, replication_factor=self._replicas)
        for future in self._admin.create_topics([topic]).values():
            future.result()
        return self.name

    def __exit__(self, *_error: object) -> None:
        for future in self._admin.delete_topics([self.name]).values():
            future.result()


def _settings(broker: Broker, **more: Any) -> dict[str, Any]:
    return {
        **broker.client_settings,
        "acks": broker.acks,
        "queue.buffering.max.messages": 1_000_000,
        "queue.buffering.max.kbytes": 64_000,
        "socket.nagle.disable": True,
        **more,
    }


def _write_out() -> None:
    """Let the disk have all that was written before: else it is busy with that meanwhile."""
    os.sync()


def _check_end(broker: Broker, topic: str, count: int) -> None:
    """Raise Failed unless the partition has so many records."""
    consumer = Consumer({**broker.client_settings, "group.id": "perf"})
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), _FLUSH_S)
    consumer.close()
    if end != count:
        raise Failed(f"{topic} has {end} records, {count} were produced")


def _fill(load: Load, broker: Broker, topic: str, size_bytes: int) -> None:
    settings = _settings(
        broker,
        **{
            "linger.ms": 20,
            "batch.size": load.batch_bytes,
            "batch.num.messages": 1_000_000,
            "message.max.bytes": 1_000_000,
            "compression.type": load.codec,
        },
    )
    with BatchProducer(settings, topic, _values(load.value_bytes)) as producer:
        producer.send(size_bytes // load.value_bytes, _FLUSH_S)


def produce(load: Load, broker: Broker, size_bytes: int) -> Outcome:
    """Produce records as fast as they go."""
    with _Topic(broker) as topic:
        _fill(load, broker, topic, size_bytes // 64)
        _write_out()
        start, cpu_s = time.perf_counter(), broker.cpu_s()
        _fill(load, broker, topic, size_bytes)
        took_s, cpu_s = time.perf_counter() - start, broker.cpu_s() - cpu_s
        counts = [part // load.value_bytes for part in (size_bytes // 64, size_bytes)]
        _check_end(broker, topic, sum(counts))
    return Outcome(size_bytes / took_s / 1e6, "MB/s", cpu_s / size_bytes * 1e9)


def produce_pipelined(broker: Broker, _size_bytes: int) -> Outcome:
    """Produce one record a request, several requests in flight."""
    with _Topic(broker) as topic:
        settings = _settings(
            broker,
            **{
                "linger.ms": 0,
                "batch.num.messages": 1,
                "max.in.flight.requests.per.connection": _IN_FLIGHT,
            },
        )
        with BatchProducer(settings, topic, _values(100)) as producer:
            producer.send(100, _FLUSH_S)
            start, cpu_s = time.perf_counter(), broker.cpu_s()
            producer.send(_PIPELINED_REQUESTS, _FLUSH_S)
            took_s, cpu_s = time.perf_counter() - start, broker.cpu_s() - cpu_s
    return Outcome(_PIPELINED_REQUESTS / took_s, "records/s", cpu_s / _PIPELINED_REQUESTS * 1e6)


def produce_sync(broker: Broker, _size_bytes: int) -> Outcome:
    """Produce one record, wait for its answer, produce the next."""
    with _Topic(broker) as topic:
        producer = Producer(_settings(broker, **{"linger.ms": 0}))
        value = _values(100)[0]
        for _ in range(100):
            producer.produce(topic, value, partition=0)
            producer.flush()
        times = []
        cpu_s = broker.cpu_s()
        for _ in range(_SYNC_REQUESTS):
            start = time.perf_counter()
            producer.produce(topic, value, partition=0)
            producer.flush()
            times.append(time.perf_counter() - start)
        cpu_s = broker.cpu_s() - cpu_s
    return Outcome(statistics.median(times) * 1e6, "µs", cpu_s / _SYNC_REQUESTS * 1e6)


def consume(broker: Broker, size_bytes: int) -> Outcome:
    """Consume a topic from its start."""
    load = Load(value_bytes=1000, batch_bytes=100_000)
    with _Topic(broker) as topic:
        _fill(load, broker, topic, size_bytes)
        _write_out()
        settings = {
            **broker.client_settings,
            "enable.auto.commit": False,
            "fetch.message.max.bytes": 1 << 20,
            # A client that has enough for now waits for a second before it fetches again.
            "queued.max.messages.kbytes": 2_000_000,
            "queued.min.messages": 10_000_000,
            "check.crcs": False,
        }
        with BatchConsumer(settings, topic) as consumer:
            start, cpu_s = time.perf_counter(), broker.cpu_s()
            consumer.read(size_bytes // load.value_bytes, _FLUSH_S)
            took_s, cpu_s = time.perf_counter() - start, broker.cpu_s() - cpu_s
    return Outcome(size_bytes / took_s / 1e6, "MB/s", cpu_s / size_bytes * 1e9)
