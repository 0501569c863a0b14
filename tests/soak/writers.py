"""Writers that know what they sent, and what was acknowledged at which offset.

Each writer has one partition for itself and numbers its records from 0; a record's bytes follow
from its writer and number, so that a reader can tell every record that was never sent.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, Message, Producer

from tests.soak.sending_thread import Pace, SendingThread

_WORDS = [random.Random(n).randbytes(40) for n in range(16)]
_PACE = Pace(burst=40, pause_s=0.002, flush_s=60.0)
_POLL_S = 0.002


class Place(NamedTuple):
    """A partition."""

    topic: str
    partition: int


class Entry(NamedTuple):
    """One record: who wrote it, its number there."""

    writer: str
    number: int

    def value(self) -> bytes:
        """Return the record's bytes."""
        words = b"".join(_WORDS[(self.number + n) % 16] for n in range(self.number % 7))
        return f"{self.writer}:{self.number}:".encode() + words


def entry_of(value: bytes) -> Entry:
    """Return which record has these bytes; fails for bytes that were never sent."""
    writer, number, _ = value.split(b":", 2)
    entry = Entry(writer.decode(), int(number))
    assert entry.value() == value, value
    return entry


class Kind(NamedTuple):
    """How a writer writes; Kafka's clients number batches only with acks=all."""

    is_idempotent: bool
    codec: str

    def settings(self) -> dict[str, Any]:
        if self.is_idempotent:
            return {"enable.idempotence": True}
        # One request in flight: what is sent again comes in order, and tells one kill from two.
        return {"acks": 1, "max.in.flight.requests.per.connection": 1}


class Writer:
    """Writes to one partition on a thread of its own until it is paused or ended."""

    def __init__(self, address: str, name: str, place: Place, kind: Kind) -> None:
        self.name = name
        self.place = place
        self.kind = kind
        #: Acknowledged records by their offsets.
        self.acknowledged: dict[int, Entry] = {}
        self.errors: list[KafkaError] = []
        self.sent = 0
        self._producer = Producer(
            {
                "bootstrap.servers": address,
                "compression.type": kind.codec,
                "linger.ms": 2,
                "batch.num.messages": 30,
                "queue.buffering.max.messages": 400,
                "message.timeout.ms": 300_000,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 100,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "log_level": 0,
                **kind.settings(),
            }
        )
        self._thread = SendingThread(name, self._producer, self._send, _PACE)

    def resume(self) -> None:
        """Write on."""
        self._thread.resume()

    def pause(self) -> None:
        """Send nothing new; what was sent is still sent again until it is acknowledged."""
        self._thread.pause()

    def settle(self) -> None:
        """Wait until everything that was sent is acknowledged."""
        self._thread.settle()
        assert not self.errors, f"{self.name}: {self.errors[:3]}"

    def end(self) -> None:
        """Settle and end the thread."""
        self.settle()
        self._thread.end()

    def _send(self) -> None:
        entry = Entry(self.name, self.sent)
        try:
            self._producer.produce(
                self.place.topic,
                entry.value(),
                partition=self.place.partition,
                on_delivery=lambda error, message: self._answered(entry, error, message),
            )
        except BufferError:
            self._producer.poll(_POLL_S)
            return
        self.sent += 1

    def _answered(self, entry: Entry, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors.append(error)
            return
        offset = message.offset()
        # An idempotent batch that was there already may be answered without its offset.
        if offset is not None and offset >= 0:
            self.acknowledged[offset] = entry
