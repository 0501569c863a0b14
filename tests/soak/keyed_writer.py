"""A producer of upserts and tombstones for one partition, on a thread of its own.

Most records belong to some hundred keys that come again and again; the others to keys that come
once, and are given a tombstone later.
"""

from __future__ import annotations

import random
import time
from collections import deque
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, Message, Producer

from tests.soak.keyed_partition import KeyedPartition, value_of
from tests.soak.sending_thread import Pace, SendingThread

_HOT_KEYS = 200
_ONCE_MAX = 100
_ONCE_SHARE = 0.15
_TOMBSTONE_SHARE = 0.1
_PACE = Pace(burst=12, pause_s=0.03, flush_s=120.0)
_POLL_S = 0.002
NUMBER = "n"


class How(NamedTuple):
    """How a producer writes."""

    codec: str = "none"
    is_idempotent: bool = True


class KeyedWriter:
    """Writes until it is paused or ended."""

    def __init__(self, address: str, partition: KeyedPartition, how: How, seed: int) -> None:
        self.partition = partition
        self.how = how
        self.acknowledged_count = 0
        self.errors: list[str] = []
        self._random = random.Random(seed)
        self._once: deque[bytes] = deque()
        self._producer = Producer(self._settings(address))
        self._thread = SendingThread(f"{partition.place}", self._producer, self._send, _PACE)

    def _settings(self, address: str) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "bootstrap.servers": address,
            "compression.type": self.how.codec,
            "acks": "all",
            "linger.ms": 5,
            "batch.num.messages": 20,
            "queue.buffering.max.messages": 400,
            "message.timeout.ms": 600_000,
            "retry.backoff.ms": 20,
            "retry.backoff.max.ms": 200,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 200,
            "topic.metadata.refresh.interval.ms": 5000,
            "log_level": 0,
        }
        # Without ids one request in flight keeps the order of what is sent again.
        ids = {"enable.idempotence": True}
        return settings | (
            ids if self.how.is_idempotent else {"max.in.flight.requests.per.connection": 1}
        )

    def resume(self) -> None:
        """Write on."""
        self._thread.resume()

    def settle(self) -> None:
        """Send nothing new, and wait until everything that was sent is acknowledged."""
        self._thread.settle()
        assert not self.errors, (self.partition.place, self.errors[:3])

    def end(self) -> None:
        """Settle and end the thread."""
        self.settle()
        self._thread.end()

    def _next_key(self) -> tuple[bytes, bool]:
        """Return a key, and whether it is to be deleted."""
        if len(self._once) > _ONCE_MAX:
            return self._once.popleft(), True
        if self._random.random() < _ONCE_SHARE:
            self._once.append(b"once-%d" % len(self.partition.records))
            return self._once[-1], False
        key = b"key-%d" % self._random.randrange(_HOT_KEYS)
        return key, self._random.random() < _TOMBSTONE_SHARE

    def _send(self) -> None:
        key, is_tombstone = self._next_key()
        partition, now_ms = self.partition, int(time.time() * 1000)
        number = partition.add(key, now_ms, is_tombstone=is_tombstone)
        try:
            self._producer.produce(
                partition.place.topic,
                None if is_tombstone else value_of(number),
                key,
                partition=partition.place.partition,
                timestamp=now_ms,
                headers={NUMBER: b"%d" % number},
                on_delivery=lambda error, message: self._answered(number, error, message),
            )
        except BufferError:
            # The partition is away for long: what waits is enough for now.
            partition.forget_last()
            self._producer.poll(_POLL_S)

    def _answered(self, number: int, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors.append(f"{number}: {error}")
            return
        self.acknowledged_count += 1
        offset, wanted = message.offset(), self.partition.offset_of(number)
        # An idempotent batch that was there already may be answered without its offset.
        notifies_peer = self.partition.kept.knows_offsets and offset is not None and offset >= 0
        if notifies_peer and offset != wanted:
            self.errors.append(f"{number} acknowledged at {offset}, not {wanted}")
