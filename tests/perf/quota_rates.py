"""How closely quotas of bytes hold their rate, on ours and on other brokers at the same time.

    python -m tests.perf.quota_rates [--peer "Kafka 3.9.1=127.0.0.1:9092"] [--seconds 150]

Each broker has producers and consumers with a quota of 1 MB/s each, of two sizes of requests. What
counts are the bytes of requests and responses, as librdkafka reports them. Two figures begin when
all windows of the quota (11 of a second) have been filled twice:

| figure | |
|---|---|
| per second | bytes through the time they took |
| as measured | the rate that a quota is compared with: of the bytes of 11 to 12 windows through the time since the oldest began; it has one request more than the time has pauses between requests |
"""  # noqa: E501 - a table

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import threading
import time
from typing import Final, NamedTuple

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from engine.client.blocking import KafkaClient
from engine.client.quota_admin import alter_quotas
from engine.client.settings import parse_addresses
from engine.host.real import RealClock, RealEntropy
from engine.host.real_streams import RealStreams
from engine.timing.sampled_rate import SampledRate
from tests.perf.broker import ours
from tests.perf.ratios import machine_line

_MB: Final = 1_000_000
_VALUE: Final = b"v" * 1000
_WINDOWS, _WINDOW_MS = 11, 1000
_WARM_S: Final = 2 * _WINDOWS * _WINDOW_MS // 1000
_SAMPLE_MS: Final = 20
_READ_TOPIC, _WRITTEN_TOPIC = "quota-read", "quota-written"
#: The most bytes of one request's or one response's records.
_SIZES: Final = {"16 KB": 16_384, "1 MB": 1_000_000}


class _Flow:
    """One client with a quota, and what it has sent or received by the time."""

    def __init__(self, address: str, kind: str, size: str) -> None:
        self.address, self.kind, self.size = address, kind, size
        self.client_id = f"{kind} {size}"
        self.samples: list[tuple[float, int]] = []
        self.thread = threading.Thread(target=self._produce if kind == "produce" else self._consume)

    def _sample(self, text: str) -> None:
        stats = json.loads(text)
        total = stats["tx_bytes" if self.kind == "produce" else "rx_bytes"]
        self.samples.append((stats["ts"] / 1e6, total))

    def _settings(self) -> dict[str, str | int | float | bool | object]:
        return {
            "bootstrap.servers": self.address,
            "client.id": self.client_id,
            "statistics.interval.ms": _SAMPLE_MS,
            "stats_cb": self._sample,
        }

    def start(self, seconds: float) -> None:
        self._ends_s = time.monotonic() + seconds
        self.thread.start()

    def _produce(self) -> None:
        producer = Producer(
            {
                **self._settings(),
                "batch.size": _SIZES[self.size],
                "batch.num.messages": max(1, _SIZES[self.size] // 1020),
                "linger.ms": 2000,
                "queue.buffering.max.kbytes": 4096,
                "max.in.flight.requests.per.connection": 1,
            }
        )
        while time.monotonic() < self._ends_s:
            try:
                producer.produce(_WRITTEN_TOPIC, _VALUE)
            except BufferError:
                producer.poll(0.01)
            else:
                producer.poll(0)
        producer.purge()

    def _consume(self) -> None:
        consumer = Consumer(
            {
                **self._settings(),
                "group.id": self.client_id,
                "auto.offset.reset": "earliest",
                "fetch.max.bytes": _SIZES[self.size],
                "max.partition.fetch.bytes": _SIZES[self.size],
                "message.max.bytes": _SIZES[self.size],
            }
        )
        consumer.subscribe([_READ_TOPIC])
        while time.monotonic() < self._ends_s:
            consumer.consume(10_000, 0.05)
        consumer.close()

    def figures(self) -> Figures:
        moved = [(at, total) for at, total in self.samples if total]
        first_s = moved[0][0]
        warm = [one for one in moved if one[0] >= first_s + _WARM_S]
        (from_s, before), (to_s, after) = warm[0], warm[-1]
        measured = []
        rate = SampledRate(_WINDOWS, _WINDOW_MS)
        last = 0
        for at, total in moved:
            if total > last:
                now_ms = round(at * 1000)
                rate.record(now_ms, total - last)
                last = total
                if at >= from_s:
                    measured.append(rate.rate_per_s(now_ms))
        return Figures((after - before) / (to_s - from_s) / _MB, statistics.mean(measured) / _MB)


class Figures(NamedTuple):
    """Rates in MB/s; see the module's head."""

    per_second: float
    as_measured: float


def _prepare(address: str, flows: list[_Flow], seconds: int) -> None:
    """Create topics, write what is read, and set the quotas."""
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.create_topics(
        [NewTopic(_READ_TOPIC, 1, 1), NewTopic(_WRITTEN_TOPIC, 1, 1)]
    ).values():
        future.result()
    producer = Producer({"bootstrap.servers": address, "linger.ms": 50, "batch.size": 15_000})
    for _ in range((seconds + 30) * _MB // len(_VALUE)):
        try:
            producer.produce(_READ_TOPIC, _VALUE)
        except BufferError:
            producer.poll(0.5)
            producer.produce(_READ_TOPIC, _VALUE)
    producer.flush()
    client = KafkaClient(
        parse_addresses(address),
        streams=RealStreams(),
        clock=RealClock(),
        entropy=RealEntropy(),
        timeout_ms=60_000,
    )
    with client:
        for flow in flows:
            key = "producer_byte_rate" if flow.kind == "produce" else "consumer_byte_rate"
            alter_quotas(client, (("client-id", flow.client_id),), {key: float(_MB)})


def main() -> None:
    """Measure, and print the rates."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", action="append", default=[])
    parser.add_argument("--seconds", type=int, default=150)
    requested = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ours(folder, []) as own:
        peers = {"kctl": own.address, **dict(text.split("=", 1) for text in requested.peer)}
        flows = {
            name: [_Flow(address, kind, size) for kind in ("produce", "consume") for size in _SIZES]
            for name, address in peers.items()
        }
        for name, address in peers.items():
            _prepare(address, flows[name], requested.seconds)
        every = [flow for of_peer in flows.values() for flow in of_peer]
        for flow in every:
            flow.start(requested.seconds)
        for flow in every:
            flow.thread.join()
        print(machine_line())
        for name, of_peer in flows.items():
            for flow in of_peer:
                found = flow.figures()
                print(
                    f"{name}: {flow.client_id} a request: {found.per_second:.3f} MB/s, "
                    f"{found.as_measured:.3f} as measured"
                )


if __name__ == "__main__":
    main()
