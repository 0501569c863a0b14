"""A running copy: fetches, changes and writes records, and commits, up to each partition's end.

It commits after COMMIT_RECORDS, COMMIT_BYTES or COMMIT_MS, whichever comes first: rarely enough to
be fast, often enough that little is copied again after a crash. Transactions are much shorter than
their timeout, also with a throttle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.fetching import ConsumedRecords, Fetcher, FetchOptions
from engine.client.producing import OutgoingRecord
from engine.copying.copied_content import ContentRules
from engine.copying.copy_continuation import SourceReplaced
from engine.copying.copy_plan import TopicCopy
from engine.copying.copy_writers import CopyWriter
from engine.errors import ApiError, EngineError
from engine.ids import uuid_text
from engine.kafka_errors import OFFSET_OUT_OF_RANGE
from engine.limits import FETCH_PARTITION_BYTES_MAX
from engine.model import TopicPartition
from engine.records.record_run import RecordRun
from engine.timing.token_bucket import TokenBucket
from engine.wire.layout import NO_UUID

COMMIT_RECORDS: Final = 20_000
COMMIT_BYTES: Final = 16 << 20
COMMIT_MS: Final = 2_000
_BURST_MS: Final = 1_000
_PAUSE_MS_MAX: Final = 200
_FETCH_BYTES_MIN: Final = 16 << 10


class PartitionUnreadable(EngineError):
    """A partition of the source cannot be read."""

    def __init__(self, partition: TopicPartition, position: int, cause: EngineError) -> None:
        """Exit code and hint are those of `cause`, except if records were deleted at the source."""
        super().__init__(f"{partition} of the source, from offset {position} on: {cause}")
        self.partition = partition
        self.cause = cause
        self.hint = cause.hint
        self.exit_code = getattr(cause, "exit_code", 1)
        if isinstance(cause, ApiError) and cause.code == OFFSET_OUT_OF_RANGE:
            self.hint = (
                "records that were not copied are deleted at the source: a new copy (another "
                "--journal, and --append) begins with those that are left"
            )


class CopiedCounts(NamedTuple):
    """Counts by source partition: copied records, their bytes, and records left out by a sample."""

    records: Counter[TopicPartition]
    size_bytes: Counter[TopicPartition]
    left_out: Counter[TopicPartition]

    def add(self, others: CopiedCounts) -> None:
        """Add the counts of `others` to these, for each partition."""
        for mine, theirs in zip(self, others, strict=True):
            mine.update(theirs)


def no_counts() -> CopiedCounts:
    """Return counts without any record."""
    return CopiedCounts(Counter(), Counter(), Counter())


class CopyingRun:
    """Copies records: repeat `fetch` and `store` until `is_done`, then call `finish`."""

    def __init__(
        self,
        source: KafkaClient,
        plan: TopicCopy,
        writer: CopyWriter,
        positions: Mapping[TopicPartition, int],
        rules: ContentRules,
        *,
        rate_bytes_per_s: int | None = None,
    ) -> None:
        """`positions` are the next offsets to copy; `rules` select and change records."""
        self._source = source
        self._clock = source.clock
        #: Offsets at which the copy of each partition ends (exclusive).
        self._ends = {key: found.end for key, found in plan.ranges.items()}
        self._to = plan.destinations()
        #: Ids of the source topics; another id means that the topic was created again.
        self._topic_ids = {topic.source: topic.source_id for topic in plan.topics}
        self._writer = writer
        self._rules = rules
        self._rate = rate_bytes_per_s
        #: Token bucket of the throttle; unused without one.
        self._bucket = TokenBucket(1, _BURST_MS)
        left = {key: at for key, at in positions.items() if at < self._ends[key]}
        self._fetcher = Fetcher(source, left, _fetch_options(rate_bytes_per_s))
        #: Next offsets to copy; below, those committed, and those that changed since.
        self._positions = dict(positions)
        self._committed = dict(positions)
        self._uncommitted: dict[TopicPartition, int] = {}
        #: Monotonic time of the last commit, after which the next one is due.
        self._open_since_ms = self._clock.monotonic_ms()
        #: Counts of records that are not committed yet.
        self._open = no_counts()
        #: Counts of records that this process has committed.
        self.counts = no_counts()

    @property
    def is_done(self) -> bool:
        """Return True if every source partition was read to the end of its range."""
        return not self._fetcher.partitions

    @property
    def trouble(self) -> EngineError | None:
        """Return why a partition of the source cannot be read at present, None if all can be."""
        return self._fetcher.trouble

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """Return the next offset to read of each source partition."""
        return dict(self._positions)

    @property
    def progress(self) -> tuple[int, int]:
        """Return the number of records read so far, and the bytes of those that were copied."""
        both = (self.counts, self._open)
        records = sum(one.records.total() + one.left_out.total() for one in both)
        return records, sum(one.size_bytes.total() for one in both)

    @property
    def committed(self) -> dict[TopicPartition, int]:
        """Return the committed position of each source partition."""
        return dict(self._committed)

    def fetch(self, wait_ms: int) -> list[ConsumedRecords]:
        """Return fetched records, after up to `wait_ms`; pause instead if the throttle requires it.

        Raises SourceReplaced if a topic was deleted and created again.
        """
        pause_ms = self._pause_ms()
        if pause_ms:
            self._source.connections.pause(min(pause_ms, _PAUSE_MS_MAX))
            return []
        arrived = self._fetcher.poll(wait_ms)
        self._check_same_topics()
        return arrived

    def _check_same_topics(self) -> None:
        """Raise SourceReplaced if the fetched topic id of a name is not that of the plan.

        The topic was deleted and created again; it is called before the fetched records are copied.
        """
        for name, topic_id in self._fetcher.topic_ids.items():
            known = self._topic_ids.get(name)
            if known is not None and topic_id != NO_UUID and uuid_text(topic_id) != known:
                raise SourceReplaced(name)

    def _pause_ms(self) -> int:
        """Return how many milliseconds to wait before the next fetch, so that the throttle is kept.

        It is 0 without a throttle.
        """
        if self._rate is None:
            return 0
        tokens = self._bucket.refill(self._rate, self._clock.monotonic_ms())
        return max(round(-tokens * 1000 / self._rate), 0)

    def store(self, arrived: list[ConsumedRecords]) -> None:
        """Copy fetched records, and commit if it is due; raises PartitionUnreadable, NotCopied."""
        for consumed in arrived:
            self._copy_consumed(consumed)
        self._writer.poll()
        if self._is_commit_due:
            self.commit()

    def _copy_consumed(self, consumed: ConsumedRecords) -> None:
        """Copy fetched records below the partition's end, and advance its position.

        At damaged records PartitionUnreadable is raised, after the records before them are copied.
        """
        key = consumed.partition
        end = self._ends[key]
        for run in consumed.runs:
            self._copy_run(key, run.select_offsets(0, end))
        if consumed.error is not None:
            raise PartitionUnreadable(key, consumed.next_offset, consumed.error)
        position = min(consumed.next_offset, end)
        if position > self._positions[key]:
            self._positions[key] = self._uncommitted[key] = position
        if consumed.next_offset >= end:
            self._fetcher.stop(key)

    def _copy_run(self, key: TopicPartition, run: RecordRun) -> None:
        """Send the records of a run that the rules select, and count them for the next commit."""
        rules, writer, to = self._rules, self._writer, self._to[key]
        records = size_bytes = 0
        for offset, timestamp_ms, record_key, record_value, record_headers in zip(
            run.offsets, run.timestamps_ms, run.keys, run.values, run.headers, strict=True
        ):
            if not rules.picks(record_key, key.partition, offset):
                self._open.left_out[key] += 1
                continue
            content = rules.content(record_key, record_value, record_headers)
            # Records of message format 0 have no timestamp.
            at_ms = None if timestamp_ms < 0 else timestamp_ms
            writer.add(OutgoingRecord(to.topic, *content, at_ms, to.partition), offset)
            records += 1
            size_bytes += len(content[0] or b"") + len(content[1] or b"")
        self._open.records[key] += records
        self._open.size_bytes[key] += size_bytes
        if self._rate is not None:
            self._bucket.take(size_bytes, self._rate, self._clock.monotonic_ms())

    @property
    def _is_commit_due(self) -> bool:
        """Return True if records, bytes or time since the last commit have reached a limit."""
        if not self._uncommitted:
            self._open_since_ms = self._clock.monotonic_ms()
            return False
        return (
            self._open.records.total() >= COMMIT_RECORDS
            or self._open.size_bytes.total() >= COMMIT_BYTES
            or self._clock.monotonic_ms() - self._open_since_ms >= COMMIT_MS
        )

    def commit(self) -> None:
        """Wait until all records are stored, and commit the source positions after them.

        Raises NotCopied if the destination refused a batch.
        """
        if self._uncommitted:
            self._writer.commit(self._uncommitted)
            self._committed |= self._uncommitted
        self._uncommitted = {}
        self.counts.add(self._open)
        self._open = no_counts()
        self._open_since_ms = self._clock.monotonic_ms()

    def finish(self) -> None:
        """Commit what is uncommitted, then the group offsets after all records.

        Raises NotCopied if the destination refused a batch.
        """
        self.commit()
        self._writer.finish()


def _fetch_options(rate_bytes_per_s: int | None) -> FetchOptions:
    """Return the options of fetch requests, which return committed records only.

    With a throttle of `rate_bytes_per_s` a response has at most about one second's bytes; None
    means the default sizes.
    """
    options = FetchOptions(read_committed=True)
    if rate_bytes_per_s is None:
        return options
    size_bytes = max(rate_bytes_per_s, _FETCH_BYTES_MIN)
    return options._replace(
        max_bytes=min(size_bytes, options.max_bytes),
        partition_max_bytes=min(size_bytes, FETCH_PARTITION_BYTES_MAX),
    )
