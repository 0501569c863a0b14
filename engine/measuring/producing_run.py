"""Measured producing: from when a record is due until the cluster has acknowledged it.

| rate | a latency starts |
|---|---|
| limited | when the record is due: waiting behind a slow response counts, too |
| unlimited | when it is passed to the producer |

At most PENDING_BYTES are outstanding: more would measure the queue in front of the connection. The
window starts when the warm-up is stored and nothing is outstanding.

Source: ProducerPerformance measures from the call of send, also with a throughput (Differs: that
leaves out the wait of records that a stall has delayed, known as coordinated omission).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from engine.client.batch_sender import BatchResult
from engine.client.blocking import KafkaClient
from engine.client.producing import Producer, ProducerCallbacks, ProducerOptions
from engine.errors import EngineError
from engine.measuring.load import RecordLoad
from engine.measuring.measurement import Measurement

#: Half of what the producer itself holds before it waits (PRODUCE_PENDING_BYTES_MAX).
PENDING_BYTES: Final = 4 << 20
_NS_PER_S: Final = 1_000_000_000
_NS_PER_MS: Final = 1_000_000
_NS_PER_US: Final = 1000
_WAIT_MS: Final = 20
#: Places contain the number of their chunk in the upper bits, which gives its time.
_PLACE_BITS: Final = 16
_PLACES: Final = 1 << _PLACE_BITS


class ProducingRun:
    """Sends `record_count` records of a load: `warm_up`, then `step` until `is_done`."""

    def __init__(
        self,
        client: KafkaClient,
        load: RecordLoad,
        options: ProducerOptions,
        record_count: int,
        now_ns: Callable[[], int],
        *,
        interval_ns: int = _NS_PER_S,
        on_retry: Callable[[EngineError], None] | None = None,
    ) -> None:
        """`now_ns` is the clock of the measurement.

        `on_retry` is called with errors after which the producer retries.
        """
        self._client = client
        self._load = load
        self._record_count = record_count
        self._now_ns = now_ns
        self._interval_ns = interval_ns
        self._producer = Producer(client, options, ProducerCallbacks(on_retry=on_retry))
        #: Number of records passed to the producer, and of those with a result.
        self._sent = self._done = 0
        self._chunk_number = 0
        #: Outstanding chunks by number: the time of sending, and the number of the first record.
        self._chunks: dict[int, tuple[int, int]] = {}
        #: Number of records without a result in each outstanding chunk.
        self._pending: dict[int, int] = {}
        #: Replaced after the warm-up.
        self.measurement = Measurement(now_ns(), interval_ns)
        #: The first error of a record, which ends the run; None without one.
        self.error: EngineError | None = None
        self.failed_count = 0

    @property
    def is_done(self) -> bool:
        """Return True if every record is acknowledged or has failed, or after an error."""
        return self.error is not None or self._done >= self._record_count

    def warm_up(self, record_count: int) -> int:
        """Send records that are not measured, at least one per partition; return their number.

        The measurement starts when all have a result. Errors: those of the topic; that of a record
        which was not stored is in `error`.
        """
        wanted = max(record_count, self._load.shape.partition_count)
        made = 0
        while made < wanted and self.error is None:
            count = min(self._load.chunk_records, wanted - made)
            for values, places in self._load.build_chunk(made, count):
                self._producer.add_fast(values, places)
            made += count
            self._note_failures(self._producer.poll(0))
        self._note_failures(self._producer.flush())
        self.measurement = Measurement(self._now_ns(), self._interval_ns)
        return made

    def _note_failures(self, results: Iterable[BatchResult]) -> None:
        """Keep the first error of failed batches, and count their records."""
        for result in results:
            if result.error is not None:
                self.error = self.error or result.error
                self.failed_count += result.batch.record_count

    def step(self) -> None:
        """Send records that are due or wait a little; process the responses that have arrived.

        The caller repeats it until the run is done.
        """
        now_ns = self._now_ns()
        due = self._count_due(now_ns)
        if due > 0 and self._has_room:
            self._send(min(due, self._load.chunk_records), now_ns)
            self._count_results(self._producer.poll(0))
        elif self._sent >= self._record_count:
            # All records are sent: only responses are awaited.
            self._count_results(self._producer.poll(_WAIT_MS))
        else:
            wait_ms = self._wait_ms(now_ns) if due <= 0 else _WAIT_MS
            began_ms = self._client.clock.monotonic_ms()
            self._count_results(self._producer.poll(wait_ms))
            if wait_ms and self._client.clock.monotonic_ms() == began_ms:
                self._client.connections.pause(1)

    @property
    def _has_room(self) -> bool:
        """Return True if less than PENDING_BYTES are sent and not acknowledged."""
        return (self._sent - self._done) * self._load.shape.size_bytes < PENDING_BYTES

    def _count_due(self, now_ns: int) -> int:
        """Return how many records may be sent now by the rate; all that remain without a rate."""
        left = self._record_count - self._sent
        rate = self._load.shape.rate_per_s
        if rate is None:
            return left
        elapsed_ns = now_ns - self.measurement.began_ns
        return min(left, int(elapsed_ns * rate / _NS_PER_S) + 1 - self._sent)

    def _due_ns(self, number: int) -> int:
        """Return when a record is due by the rate, in nanoseconds on the clock of the run."""
        rate = self._load.shape.rate_per_s
        assert rate is not None
        return self.measurement.began_ns + int(number * _NS_PER_S / rate)

    def _wait_ms(self, now_ns: int) -> int:
        """Return how many milliseconds to wait for responses.

        The wait ends when the next record, or a batch of the producer, is due to be sent.
        """
        next_ms = max((self._due_ns(self._sent) - now_ns) // _NS_PER_MS, 0)
        batch_ms = self._producer.due_in_ms()
        return min(int(next_ms), _WAIT_MS if batch_ms is None else batch_ms, _WAIT_MS)

    def _send(self, count: int, now_ns: int) -> None:
        """Send the next `count` records as a chunk, whose time of sending is `now_ns`.

        Each record's place is the chunk's number and its position in the chunk, from which its
        latency is computed when it is acknowledged.
        """
        self._chunk_number += 1
        self._chunks[self._chunk_number] = now_ns, self._sent
        self._pending[self._chunk_number] = count
        base = self._chunk_number * _PLACES
        for values, places in self._load.build_chunk(self._sent, count):
            shifted = range(base + places.start, base + places.stop, places.step)
            self._producer.add_fast(values, shifted)
        self._sent += count

    def _count_results(self, results: Iterable[BatchResult]) -> None:
        """Add acknowledged batches to the measurement, and count the records of failed ones."""
        now_ns = self._now_ns()
        for result in results:
            count = result.batch.record_count
            self._done += count
            if result.error is not None:
                self._note_failures([result])
                continue
            chunks = Counter(place >> _PLACE_BITS for place in result.batch.places)
            latencies = self._count_latencies(result, chunks, now_ns)
            self.measurement.count(count, count * self._load.shape.size_bytes, now_ns, latencies)
            self._finish_chunks(chunks)

    def _count_latencies(
        self, result: BatchResult, chunks: Counter[int], now_ns: int
    ) -> Counter[int]:
        """Return the number of records of an acknowledged batch for each latency, in microseconds.

        Latency counts from the time at which a record was due; without a rate from when it was
        sent.
        """
        if self._load.shape.rate_per_s is None:
            latencies: Counter[int] = Counter()
            for chunk, count in chunks.items():
                latencies[(now_ns - self._chunks[chunk][0]) // _NS_PER_US] += count
            return latencies
        return Counter(
            (now_ns - self._due_ns(self._chunks[place >> _PLACE_BITS][1] + place % _PLACES))
            // _NS_PER_US
            for place in result.batch.places
        )

    def _finish_chunks(self, done: Counter[int]) -> None:
        """Count acknowledged records by chunk, and drop the chunks of which all are acknowledged.

        `done` has the number of records of each chunk.
        """
        for chunk, count in done.items():
            self._pending[chunk] -= count
            if not self._pending[chunk]:
                del self._pending[chunk], self._chunks[chunk]

    def finish(self) -> Measurement:
        """End the measurement at the last record and return it."""
        self.measurement.finish()
        return self.measurement
