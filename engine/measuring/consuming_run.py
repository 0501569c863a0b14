"""Consuming that is measured: partitions from offsets on, outside of a group.

The window begins with the first response that brings records: what that brings does not count, as
nobody knows how long it was on its way. A latency is how long a response was waited for, after the
one before had been taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from engine.client.blocking import KafkaClient
from engine.client.fetching import ConsumedRecords, Fetcher, FetchOptions
from engine.errors import EngineError
from engine.measuring.measurement import Measurement
from engine.model import TopicPartition
from engine.records.record_run import RecordRun

_NS_PER_S: Final = 1_000_000_000
_NS_PER_US: Final = 1000
_WAIT_MS: Final = 500


class ConsumingRun:
    """Fetches from starts to ends (exclusive): `step` until `is_done`.

    With `records_max` it ends once so many are measured: those before the window are others.
    """

    def __init__(
        self,
        client: KafkaClient,
        starts: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
        options: FetchOptions,
        now_ns: Callable[[], int],
        *,
        records_max: int | None = None,
        warm_up_records: int = 0,
        interval_ns: int = _NS_PER_S,
    ) -> None:
        self._ends = ends
        left = {key: start for key, start in starts.items() if start < ends[key]}
        self._fetcher = Fetcher(client, left, options)
        self._now_ns = now_ns
        self._interval_ns = interval_ns
        self._records_max = records_max
        self._warm_up_left = max(warm_up_records, 1)
        #: None before the warm-up is over.
        self._measurement: Measurement | None = None
        self._began_ns = now_ns()
        self.warm_up_records = 0
        self.read_count = 0
        self.error: EngineError | None = None

    @property
    def measurement(self) -> Measurement:
        """Return what is counted; nothing before the window has begun."""
        return self._measurement or Measurement(self._began_ns, self._interval_ns)

    @property
    def is_done(self) -> bool:
        """Return whether all was read, or so much as was asked for."""
        if self.error is not None or not self._fetcher.partitions:
            return True
        return self._records_max is not None and self.measurement.records >= self._records_max

    def step(self) -> None:
        """Wait for records and count them."""
        began_ns = self._now_ns()
        arrived = self._fetcher.poll(_WAIT_MS)
        now_ns = self._now_ns()
        records = size_bytes = 0
        for consumed in arrived:
            count, size = self._take(consumed)
            records += count
            size_bytes += size
        if records:
            self._count(records, size_bytes, now_ns, (now_ns - began_ns) // _NS_PER_US)

    def _take(self, consumed: ConsumedRecords) -> tuple[int, int]:
        end = self._ends[consumed.partition]
        runs = [run.between(0, end) for run in consumed.runs]
        if consumed.error is not None:
            self.error = self.error or consumed.error
        elif consumed.next_offset >= end:
            self._fetcher.stop(consumed.partition)
        return sum(run.record_count for run in runs), sum(map(content_bytes, runs))

    def _count(self, records: int, size_bytes: int, now_ns: int, waited_us: int) -> None:
        self.read_count += records
        if self._measurement is None:
            self.warm_up_records += records
            self._warm_up_left -= records
            if self._warm_up_left <= 0:
                self._measurement = Measurement(now_ns, self._interval_ns)
            return
        self._measurement.count(records, size_bytes, now_ns, {waited_us: 1})

    def finish(self) -> Measurement:
        """End the measurement and return it."""
        measurement = self.measurement
        measurement.finish()
        return measurement


def content_bytes(run: RecordRun) -> int:
    """Return the bytes of keys and values."""
    return sum(map(len, filter(None, run.keys))) + sum(map(len, filter(None, run.values)))
