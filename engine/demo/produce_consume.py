"""A producer and a consumer of one topic, side by side.

| mode | a record is sent | its result |
|---|---|---|
| sync | after the previous one is acknowledged | is waited for |
| async | without waiting, many at a time | goes to a callback |

Both run in one loop: the producer sends, then the consumer polls. The consumer is the only member
of a group, which starts at the end of the topic.

Source: TXN-1; the producer and consumer demo in Kafka's examples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple

from engine.client.batch_sender import BatchResult
from engine.client.blocking import KafkaClient
from engine.client.fetching import ConsumedRecords, FetchOptions
from engine.client.group_consumer import GroupConsumer
from engine.client.member_session import MemberSettings
from engine.client.offsets import LATEST, list_offsets
from engine.client.producing import OutgoingRecord, Producer
from engine.errors import EngineError
from engine.model import TopicPartition

#: Maximum number of records without a result.
_ASYNC_RECORDS_MAX: Final = 1_000
_ASYNC_CHUNK: Final = 100
_WAIT_MS: Final = 50
_FETCH_WAIT_MS: Final = 100


class SendMode(Enum):
    """Whether the result of each record is awaited before the next is sent."""

    SYNC = "sync"
    ASYNC = "async"


class SeenRecord(NamedTuple):
    """An acknowledged or received record; `took_ms` is None for received ones."""

    is_sent: bool
    key: bytes | None
    value: bytes | None
    partition: TopicPartition
    offset: int
    took_ms: int | None


class _Sent(NamedTuple):
    key: bytes
    value: bytes
    sent_ms: int


class ProduceConsume:
    """A run: `run` sends and receives records, up to a number or without end."""

    def __init__(
        self,
        clients: tuple[KafkaClient, KafkaClient],
        topic: str,
        group_id: str,
        mode: SendMode,
        on_record: Callable[[SeenRecord], None],
    ) -> None:
        """`clients` are the producer's and the consumer's.

        `on_record` is called with each acknowledged and each received record.
        """
        self._client, consumer_client = clients
        self._topic = topic
        self._mode = mode
        self._on_record = on_record
        self._producer = Producer(self._client)
        self._consumer = GroupConsumer(
            consumer_client,
            MemberSettings(group_id),
            [topic],
            start_of=lambda partitions: _ends(consumer_client, partitions),
            fetch=FetchOptions(max_wait_ms=_FETCH_WAIT_MS),
        )
        #: Records without a result, by number.
        self._in_flight: dict[int, _Sent] = {}
        self._next_number = 0
        #: Monotonic time of the first record, None before.
        self.began_ms: int | None = None
        self.sent_count = 0
        self.received_count = 0

    def run(self, record_count: int | None, on_turn: Callable[[], None]) -> None:
        """Send `record_count` records and receive them all; with None until `on_turn` raises.

        `on_turn` is called between two steps. Errors: those of the requests, and of records that
        are not stored.
        """
        # The consumer must have joined before the first record, since it starts at the end.
        while not self._consumer.session.is_joined:
            on_turn()
            self._consumer.poll(0)
        self.began_ms = self._client.clock.monotonic_ms()
        while record_count is None or self.sent_count < record_count:
            on_turn()
            left = None if record_count is None else record_count - self._next_number
            self._send_next(left)
            self._receive(0)
        while record_count is None or self.received_count < record_count:
            on_turn()
            self._receive(_WAIT_MS)

    def close(self) -> None:
        """Commit and leave the group; raises the errors of the requests."""
        self._consumer.close()

    def _send_next(self, left: int | None) -> None:
        """Send some records and report those that are acknowledged; `left` None means no limit.

        In mode SYNC it sends one record and waits for its result; in mode ASYNC up to
        `_ASYNC_CHUNK`, without waiting unless too many are in flight.
        """
        if self._mode is SendMode.SYNC:
            self._add_next()
            self._report_stored(self._producer.flush())
            return
        room = min(_ASYNC_CHUNK, _ASYNC_RECORDS_MAX - len(self._in_flight))
        for _ in range(room if left is None else min(room, left)):
            self._add_next()
        is_full = not room or left == 0
        self._report_stored(self._producer.poll(_WAIT_MS if is_full else 0))

    def _add_next(self) -> None:
        """Add the next record to the producer, and remember the time."""
        number = self._next_number
        self._next_number += 1
        key, value = str(number).encode(), f"message {number}".encode()
        self._in_flight[number] = _Sent(key, value, self._client.clock.monotonic_ms())
        self._producer.add(OutgoingRecord(self._topic, key, value), number)

    def _report_stored(self, results: Sequence[BatchResult]) -> None:
        """Count the records of acknowledged batches, and pass each to `on_record` with its latency.

        Raises the error of a failed batch.
        """
        now_ms = self._client.clock.monotonic_ms()
        for result in results:
            if result.error is not None:
                raise result.error
            for delta, number in enumerate(result.batch.places):
                sent = self._in_flight.pop(number)
                self.sent_count += 1
                offset = result.base_offset + delta if result.base_offset >= 0 else -1
                self._on_record(
                    SeenRecord(
                        True,
                        sent.key,
                        sent.value,
                        result.batch.partition,
                        offset,
                        now_ms - sent.sent_ms,
                    )
                )

    def _receive(self, wait_ms: int) -> None:
        """Poll the consumer once and report its records; raises the error of a partition."""
        for consumed in self._consumer.poll(wait_ms):
            if consumed.error is not None:
                raise consumed.error
            self._report(consumed)

    def _report(self, consumed: ConsumedRecords) -> None:
        """Count consumed records and pass each to `on_record`."""
        for run in consumed.runs:
            for offset, key, value in zip(run.offsets, run.keys, run.values, strict=True):
                self.received_count += 1
                self._on_record(SeenRecord(False, key, value, consumed.partition, offset, None))


def _ends(
    client: KafkaClient, partitions: Sequence[TopicPartition]
) -> Mapping[TopicPartition, int | EngineError]:
    """Return the log end offset of each partition, or its error."""
    found = list_offsets(client, dict.fromkeys(partitions, LATEST))
    return {key: end if isinstance(end, EngineError) else end.offset for key, end in found.items()}
