"""Measured consuming: reads partitions from given offsets, without a group.

The window starts with the first fetch after the warm-up, when connections are open and metadata is
known. A latency is the time that a response was waited for after the previous one was processed.
"""

from __future__ import annotations

import math
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
    """Reads partitions from start to end (exclusive): `warm_up`, then `step` until `is_done`.

    With `records_max` it ends once that many records are measured.
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
        interval_ns: int = _NS_PER_S,
    ) -> None:
        """`now_ns` is the clock of the measurement."""
        self._client = client
        #: Offset from which each partition is fetched; the warm-up raises it.
        self._starts = dict(starts)
        self._ends = ends
        self._options = options
        self._now_ns = now_ns
        self._interval_ns = interval_ns
        self._records_max = records_max
        #: Replaced after the warm-up.
        self.measurement = Measurement(now_ns(), interval_ns)
        #: The error that ended the run, None without one.
        self.error: EngineError | None = None
        self._fetcher = self._fetcher_to(ends)

    @property
    def is_done(self) -> bool:
        """Return True after an error, or when all records or the requested number were read."""
        if self.error is not None or not self._fetcher.partitions:
            return True
        return self._records_max is not None and self.measurement.records >= self._records_max

    def warm_up(self, record_count: int) -> int:
        """Read records that are not measured, evenly from all partitions; return their number.

        The measurement starts after them. Errors: those of requesting metadata.
        """
        share = math.ceil(record_count / max(len(self._starts), 1))
        ends = {key: min(at + share, self._ends[key]) for key, at in self._starts.items()}
        read_count = self._read_up_to(ends) if share else 0
        self._starts = {key: max(end, self._starts[key]) for key, end in ends.items()}
        self._fetcher = self._fetcher_to(self._ends)
        if self._fetcher.partitions:
            self._fetcher.prepare()
        self.measurement = Measurement(self._now_ns(), self._interval_ns)
        return read_count

    def _fetcher_to(self, ends: Mapping[TopicPartition, int]) -> Fetcher:
        """Return a new fetcher for the partitions that have records before these end offsets."""
        left = {key: start for key, start in self._starts.items() if start < ends[key]}
        return Fetcher(self._client, left, self._options)

    def _read_up_to(self, ends: Mapping[TopicPartition, int]) -> int:
        """Read all partitions up to these end offsets; return the number of records.

        It also waits for outstanding responses, which would delay those of the measurement.
        """
        read_count = 0
        fetcher = self._fetcher_to(ends)
        while fetcher.partitions or fetcher.is_waiting:
            for consumed in fetcher.poll(_WAIT_MS):
                read_count += self._count_before_end(fetcher, consumed, ends)[0]
            if self.error is not None:
                break
        return read_count

    def step(self) -> None:
        """Wait for records for a short time, and add those that arrive to the measurement.

        The caller repeats it until `is_done`.
        """
        began_ns = self._now_ns()
        arrived = self._fetcher.poll(_WAIT_MS)
        now_ns = self._now_ns()
        records = size_bytes = 0
        for consumed in arrived:
            count, size = self._count_before_end(self._fetcher, consumed, self._ends)
            records += count
            size_bytes += size
        if records:
            waited_us = (now_ns - began_ns) // _NS_PER_US
            self.measurement.count(records, size_bytes, now_ns, {waited_us: 1})

    def _count_before_end(
        self, fetcher: Fetcher, consumed: ConsumedRecords, ends: Mapping[TopicPartition, int]
    ) -> tuple[int, int]:
        """Return number and bytes of the fetched records before the partition's end offset.

        At the end the fetcher stops reading the partition. The first error is kept in `error`.
        """
        end = ends[consumed.partition]
        runs = [run.select_offsets(0, end) for run in consumed.runs]
        if consumed.error is not None:
            self.error = self.error or consumed.error
        elif consumed.next_offset >= end:
            fetcher.stop(consumed.partition)
        return sum(run.record_count for run in runs), sum(map(content_bytes, runs))

    def finish(self) -> Measurement:
        """End the measurement at the last record and return it."""
        self.measurement.finish()
        return self.measurement


def content_bytes(run: RecordRun) -> int:
    """Return the size of all keys and values in a run of records; headers do not count."""
    return sum(map(len, filter(None, run.keys))) + sum(map(len, filter(None, run.values)))
