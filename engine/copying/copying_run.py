"""A copy under way: fetch, change, add; commit every so often; until the end of each partition.

A commit comes after COMMIT_RECORDS, COMMIT_BYTES or COMMIT_MS, whichever is first: few enough for
speed, often enough that little is read again after a death. Transactions are far shorter than
their timeout, also under a throttle.
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
        """Exit code and hint are those of `cause`, if it is not about deleted records."""
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
    """Records by partition of the source: copied, their bytes, and those that a sample left out."""

    records: Counter[TopicPartition]
    size_bytes: Counter[TopicPartition]
    left_out: Counter[TopicPartition]

    def add(self, others: CopiedCounts) -> None:
        """Count those of others, too."""
        for mine, theirs in zip(self, others, strict=True):
            mine.update(theirs)


def no_counts() -> CopiedCounts:
    """Return counts of nothing."""
    return CopiedCounts(Counter(), Counter(), Counter())


class CopyingRun:
    """Copies from positions on: `fetch`, `store`, until `is_done`; then `finish`."""

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
        #: Ids of the source topics at the start: another id means another topic of that name.
        self._topic_ids = {topic.source: topic.source_id for topic in plan.topics}
        self._writer = writer
        self._rules = rules
        self._rate = rate_bytes_per_s
        #: Tokens of the byte rate; unused without one.
        self._bucket = TokenBucket(1, _BURST_MS)
        left = {key: at for key, at in positions.items() if at < self._ends[key]}
        self._fetcher = Fetcher(source, left, _fetch_options(rate_bytes_per_s))
        #: Next offset to copy; below, as of the last commit, and what was added since.
        self._positions = dict(positions)
        self._committed = dict(positions)
        self._uncommitted: dict[TopicPartition, int] = {}
        #: When the last commit was (monotonic): the next is due a fixed time later.
        self._open_since_ms = self._clock.monotonic_ms()
        #: Counts of records that were added and are not committed.
        self._open = no_counts()
        #: Counts of records that this process has committed.
        self.counts = no_counts()

    @property
    def is_done(self) -> bool:
        """Return whether every partition was read to its end."""
        return not self._fetcher.partitions

    @property
    def trouble(self) -> EngineError | None:
        """Return what keeps a partition of the source from being read now."""
        return self._fetcher.trouble

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """Return how far the source is read."""
        return dict(self._positions)

    @property
    def progress(self) -> tuple[int, int]:
        """Return how many records were read so far, and the bytes of the copied ones."""
        both = (self.counts, self._open)
        records = sum(one.records.total() + one.left_out.total() for one in both)
        return records, sum(one.size_bytes.total() for one in both)

    @property
    def committed(self) -> dict[TopicPartition, int]:
        """Return how far the source is known to be copied."""
        return dict(self._committed)

    def fetch(self, wait_ms: int) -> list[ConsumedRecords]:
        """Return fetched records, after a pause if the throttle demands it.

        Raises SourceReplaced if a topic was deleted and created again.
        """
        pause_ms = self._pause_ms()
        if pause_ms:
            self._source.connections.pause(min(pause_ms, _PAUSE_MS_MAX))
            return []
        arrived = self._fetcher.poll(wait_ms)
        self._require_same_topics()
        return arrived

    def _require_same_topics(self) -> None:
        """Raise SourceReplaced before a record of another topic of the same name is copied."""
        for name, topic_id in self._fetcher.topic_ids.items():
            known = self._topic_ids.get(name)
            if known is not None and topic_id != NO_UUID and uuid_text(topic_id) != known:
                raise SourceReplaced(name)

    def _pause_ms(self) -> int:
        """Return the ms to wait so that the rate is held, 0 without a rate."""
        if self._rate is None:
            return 0
        tokens = self._bucket.tokens(self._rate, self._clock.monotonic_ms())
        return max(round(-tokens * 1000 / self._rate), 0)

    def store(self, arrived: list[ConsumedRecords]) -> None:
        """Copy fetched records, and commit if it is time; raises PartitionUnreadable, NotCopied."""
        for consumed in arrived:
            self._copy(consumed)
        self._writer.poll()
        if self._is_commit_due:
            self.commit()

    def _copy(self, consumed: ConsumedRecords) -> None:
        """Copy fetched records below the partition's end, and advance its position.

        Raises PartitionUnreadable at damaged records, after those before them.
        """
        key = consumed.partition
        end = self._ends[key]
        for run in consumed.runs:
            self._copy_run(key, run.between(0, end))
        if consumed.error is not None:
            raise PartitionUnreadable(key, consumed.next_offset, consumed.error)
        position = min(consumed.next_offset, end)
        if position > self._positions[key]:
            self._positions[key] = self._uncommitted[key] = position
        if consumed.next_offset >= end:
            self._fetcher.stop(key)

    def _copy_run(self, key: TopicPartition, run: RecordRun) -> None:
        """Write the records that the rules select, and count them for the next commit."""
        rules, writer, to = self._rules, self._writer, self._to[key]
        records = size_bytes = 0
        for offset, timestamp_ms, record_key, record_value, record_headers in zip(
            run.offsets, run.timestamps_ms, run.keys, run.values, run.headers, strict=True
        ):
            if not rules.picks(record_key, key.partition, offset):
                self._open.left_out[key] += 1
                continue
            content = rules.content(record_key, record_value, record_headers)
            # Records of format 0 have no time.
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
        """Return True once records, bytes or time since the last commit reach their bound."""
        if not self._uncommitted:
            self._open_since_ms = self._clock.monotonic_ms()
            return False
        return (
            self._open.records.total() >= COMMIT_RECORDS
            or self._open.size_bytes.total() >= COMMIT_BYTES
            or self._clock.monotonic_ms() - self._open_since_ms >= COMMIT_MS
        )

    def commit(self) -> None:
        """Flush all copied records, and store the positions after them; raises NotCopied."""
        if self._uncommitted:
            self._writer.commit(self._uncommitted)
            self._committed |= self._uncommitted
        self._uncommitted = {}
        self.counts.add(self._open)
        self._open = no_counts()
        self._open_since_ms = self._clock.monotonic_ms()

    def finish(self) -> None:
        """Commit what is left, and where groups stand."""
        self.commit()
        self._writer.finish()


def _fetch_options(rate_bytes_per_s: int | None) -> FetchOptions:
    """Return how to fetch: committed records, and under a throttle one second's bytes at most."""
    options = FetchOptions(read_committed=True)
    if rate_bytes_per_s is None:
        return options
    size_bytes = max(rate_bytes_per_s, _FETCH_BYTES_MIN)
    return options._replace(
        max_bytes=min(size_bytes, options.max_bytes),
        partition_max_bytes=min(size_bytes, FETCH_PARTITION_BYTES_MAX),
    )
