"""End-to-end latency: from when a record is due until a consumer in the same process has it.

Both sides use one clock and one thread, which sends without waiting and then waits for the
consumer. Each value begins with the number of its record; other records in the topic are skipped.

| rate | a record is sent |
|---|---|
| unlimited | when the previous one has arrived: one at a time |
| limited | when it is due, however late others are; its latency starts then |

Source: EndToEndLatency sends one at a time, and first waits for the producer's response (Differs).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.errors import TimedOut
from engine.client.fetching import ConsumedRecords, Fetcher, FetchOptions
from engine.client.producing import OutgoingRecord, Producer, ProducerCallbacks, ProducerOptions
from engine.errors import EngineError
from engine.host.ports import Entropy
from engine.measuring.load import LoadShape
from engine.measuring.measurement import Measurement
from engine.model import TopicPartition

_NS_PER_S: Final = 1_000_000_000
_NS_PER_MS: Final = 1_000_000
_NS_PER_US: Final = 1000
_WAIT_MS: Final = 5
NUMBER_BYTES: Final = 8
_TAG_BYTES: Final = 8
#: Minimum size of a value: the tag by which a run recognizes its records, and the number.
VALUE_BYTES_MIN: Final = _TAG_BYTES + NUMBER_BYTES


class LatencySides(NamedTuple):
    """The two clients with their options; consuming starts at `starts`."""

    producing: KafkaClient
    consuming: KafkaClient
    sending: ProducerOptions
    fetching: FetchOptions
    starts: Mapping[TopicPartition, int]


class LatencyRun:
    """Sends `record_count` records and receives each: `warm_up`, then `step` until `is_done`."""

    def __init__(
        self,
        sides: LatencySides,
        shape: LoadShape,
        record_count: int,
        now_ns: Callable[[], int],
        *,
        interval_ns: int = _NS_PER_S,
        on_retry: Callable[[EngineError], None] | None = None,
    ) -> None:
        """`now_ns` is the clock of the measurement.

        `on_retry` is called with errors after which the producer retries.
        """
        producing = sides.producing
        self._producing = producing
        self._fetcher = Fetcher(sides.consuming, sides.starts, sides.fetching)
        self._producer = Producer(producing, sides.sending, ProducerCallbacks(on_retry=on_retry))
        self._shape = shape
        self._now_ns = now_ns
        self._interval_ns = interval_ns
        #: First bytes of each value; records without it are skipped.
        self._tag = producing.entropy.random_bytes(_TAG_BYTES)
        self._padding = _padding(producing.entropy, shape.size_bytes)
        self._record_count = record_count
        #: Number of records sent, and of those that have arrived.
        self._sent = self._arrived = 0
        #: Number of the first record after the warm-up.
        self._began_number = 0
        #: Time at which each outstanding record was sent or due, by number.
        self._sent_ns: dict[int, int] = {}
        #: Monotonic time of the last arrival; the run fails after too long a wait.
        self._waiting_since_ms = producing.clock.monotonic_ms()
        #: Replaced after the warm-up.
        self.measurement = Measurement(now_ns(), interval_ns)
        #: The error that ended the run, None without one.
        self.error: EngineError | None = None

    @property
    def is_done(self) -> bool:
        """Return True if every record sent was consumed, or after an error."""
        return self.error is not None or self._arrived >= self._record_count

    def warm_up(self, record_count: int) -> int:
        """Send records that are not measured, each after the previous one was consumed.

        Returns their number, at least one for each partition.
        """
        wanted = max(record_count, self._shape.partition_count)
        counted, self._record_count = self._record_count, wanted
        self._began_number = wanted
        while not self.is_done:
            self._step_one_at_a_time()
        self._record_count = wanted + counted
        self.measurement = Measurement(self._now_ns(), self._interval_ns)
        return wanted

    def step(self) -> None:
        """Send a record that is due by the rate, or wait a little for records to be consumed.

        Without a rate a record is sent when the previous one was consumed.
        """
        if self._shape.rate_per_s is None:
            self._step_one_at_a_time()
            return
        now_ns = self._now_ns()
        due_ns = self._due_ns(self._sent)
        is_left = self._sent < self._record_count
        if is_left and due_ns <= now_ns:
            self._send(due_ns)
            self._poll(0)
            return
        wait_ms = _WAIT_MS
        if is_left:
            wait_ms = min(int((due_ns - now_ns) // _NS_PER_MS), _WAIT_MS)
        self._poll(wait_ms)

    def _due_ns(self, number: int) -> int:
        """Return when a record is due by the rate, in nanoseconds on the clock of the run.

        `number` includes the records of the warm-up, which the rate does not.
        """
        rate = self._shape.rate_per_s
        assert rate is not None
        count = number - self._began_number
        return self.measurement.began_ns + int(count * _NS_PER_S / rate)

    def _step_one_at_a_time(self) -> None:
        """Send a record if the previous one was consumed, and wait a little for it to arrive."""
        if not self._sent_ns:
            self._send(self._now_ns())
        self._poll(_WAIT_MS)

    def _send(self, began_ns: int) -> None:
        """Send the next record; its latency counts from `began_ns`.

        The value begins with the tag of the run and the record's number, by which it is found when
        it is consumed.
        """
        number, shape = self._sent, self._shape
        partition = None if shape.key_count else number % shape.partition_count
        key = b"%d" % (number % shape.key_count) if shape.key_count else None
        value = self._tag + number.to_bytes(NUMBER_BYTES) + self._padding
        if not self._sent_ns:
            self._waiting_since_ms = self._producing.clock.monotonic_ms()
        self._sent_ns[number] = began_ns
        self._producer.add(OutgoingRecord(shape.topic, key, value, partition=partition))
        self._sent += 1

    def _poll(self, wait_ms: int) -> None:
        """Process the producer's responses, and wait up to `wait_ms` for consumed records."""
        for result in self._producer.poll(0):
            if result.error is not None:
                self.error = self.error or result.error
                return
        arrived = self._fetcher.poll(wait_ms)
        now_ns = self._now_ns()
        for consumed in arrived:
            self._count_consumed(consumed, now_ns)
        waited_ms = self._producing.clock.monotonic_ms() - self._waiting_since_ms
        if self._sent_ns and waited_ms > self._producing.timeout_ms:
            what = f"{len(self._sent_ns)} records that were sent and did not arrive"
            self.error = TimedOut(what, self._producing.timeout_ms)

    def _count_consumed(self, consumed: ConsumedRecords, now_ns: int) -> None:
        """Measure the latency of consumed records of this run, each once.

        Records of the warm-up and of other producers do not count. An error of the partition is
        kept.
        """
        if consumed.error is not None:
            self.error = self.error or consumed.error
            return
        values = (value for run in consumed.runs for value in run.values if value is not None)
        for value in values:
            if not value.startswith(self._tag):
                continue
            number = int.from_bytes(value[_TAG_BYTES:VALUE_BYTES_MIN])
            began_ns = self._sent_ns.pop(number, None)
            if began_ns is not None:
                self._arrived += 1
                self._waiting_since_ms = self._producing.clock.monotonic_ms()
                if number < self._began_number:
                    continue
                latency_us = (now_ns - began_ns) // _NS_PER_US
                self.measurement.count(1, len(value), now_ns, {latency_us: 1})

    def finish(self) -> Measurement:
        """End the measurement at the last record and return it."""
        self.measurement.finish()
        return self.measurement


def _padding(entropy: Entropy, size_bytes: int) -> bytes:
    """Return random bytes, which do not compress, to fill a value to its size."""
    return entropy.random_bytes(max(size_bytes - VALUE_BYTES_MIN, 0))
