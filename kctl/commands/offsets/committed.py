"""Implementation of `kctl offsets committed`: reads copied `__consumer_offsets` directories.

```
__consumer_offsets-0 … -49 ─ records by their time ─┬─ the last of each group and partition ─> rows
                                                    └─ all of them, with --history ──────────> rows
```

Commits of aborted transactions are left out. Commits of a transaction that is open at the end of
the log are included without a mark, since the log does not show its result. No request is sent to
a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import itemgetter
from struct import Struct as Format
from typing import NamedTuple

from engine.errors import CorruptRecord, EngineError, WireError
from engine.host.ports import Files
from engine.inspection.replay import ReplayBounds, SourceRecord, partitions_of, source_records
from engine.log.directory.log_dir import find_log_dir
from engine.model import TopicPartition
from engine.wire.coordinator_records import CoordinatorRecord, decode_coordinator_record
from engine.wire.structs import Struct
from kctl.command_results import end_with
from kctl.console import notify, report_error
from kctl.render import Column, check_format
from kctl.render.rows import OutputRow
from kctl.time_text import time_text

TOPIC = "__consumer_offsets"
COLUMNS = (
    Column("group", "GROUP", is_name=True),
    Column("topic", "TOPIC", is_name=True),
    Column("partition", "PARTITION", right=True),
    Column("committed_offset", "COMMITTED", right=True, kind="integer?"),
    Column("commit_timestamp_ms", "COMMIT-MS", wide=True, kind="integer?"),
    Column("committed_at", "AT", kind="string?"),
    Column("metadata", "METADATA", wide=True, kind="string?"),
    Column("log_partition", "LOG-PARTITION", right=True, wide=True),
    Column("log_offset", "LOG-OFFSET", right=True, wide=True),
)
_TYPE = Format(">h")
_OFFSET_TYPES = (0, 1)
_LATER_RELEASE = "4.3.0"


class CommittedRequest(NamedTuple):
    """The options of `kctl offsets committed`."""

    path: str
    groups: tuple[str, ...]
    topics: tuple[str, ...]
    history: bool
    output: str


class Commit(NamedTuple):
    """A record of a committed offset; `value` is None for a tombstone (deleted or expired)."""

    group_id: str
    partition: TopicPartition
    value: Struct | None
    source: SourceRecord


def show_committed(request: CommittedRequest, files: Files) -> int:
    """Print committed offsets from a copy of the topic __consumer_offsets; returns the exit code.

    After a corrupt record, the commits before it are still printed.
    """
    check_format(request.output)
    partitions = partitions_of(find_log_dir(files, request.path), TOPIC)
    reading = CommitReading(request)
    try:
        for record in source_records(files, partitions, ReplayBounds()):
            reading.read_record(record)
    except CorruptRecord as error:
        # Print the commits read before the error.
        report_error(error)
        reading.failures += 1
    if reading.failures:
        notify("some records could not be read: later commits may be missing")
    return end_with(COLUMNS, reading.rows(), request.output, failures=reading.failures)


class CommitReading:
    """Collects the requested commits in the order in which they are read."""

    def __init__(self, request: CommittedRequest) -> None:
        """Create a reading of __consumer_offsets that has seen no commit yet."""
        self._request = request
        self._history: list[Commit] = []
        #: The last commit of each group and partition; tombstones remove it.
        self._last: dict[tuple[str, TopicPartition], Commit] = {}
        self.failures = 0

    def read_record(self, record: SourceRecord) -> None:
        """Add the next record of __consumer_offsets; ignore records that are no committed offsets.

        A record that cannot be decoded is printed and counted as a failure.
        """
        try:
            commit = decode_commit(record)
        except EngineError as error:
            report_error(error, f"{TOPIC}-{record.partition} at {record.offset}")
            self.failures += 1
            return
        if commit is None or not self._is_wanted(commit):
            return
        if self._request.history:
            self._history.append(commit)
        elif commit.value is None:
            self._last.pop((commit.group_id, commit.partition), None)
        else:
            self._last[commit.group_id, commit.partition] = commit

    def _is_wanted(self, commit: Commit) -> bool:
        """Return True if the options select the commit's group and topic."""
        request = self._request
        return (not request.groups or commit.group_id in request.groups) and (
            not request.topics or commit.partition.topic in request.topics
        )

    def rows(self) -> Iterator[OutputRow]:
        """Return a row for the last commit of each group and partition, in this order.

        With --history, all commits in the order of the log, tombstones too.
        """
        commits: Iterable[Commit] = self._history
        if not self._request.history:
            commits = [commit for _, commit in sorted(self._last.items(), key=itemgetter(0))]
        return map(_commit_row, commits)


def decode_commit(record: SourceRecord) -> Commit | None:
    """Decode a record of __consumer_offsets; None if it is not a committed offset.

    Errors: WireError.
    """
    if record.key is None or len(record.key) < _TYPE.size:
        raise WireError("a record without the type of its key")
    (type_id,) = _TYPE.unpack_from(record.key)
    if type_id not in _OFFSET_TYPES:
        return None
    found = _decode(record.key, record.value)
    key = found.key
    return Commit(key.group, TopicPartition(key.topic, key.partition), found.value, record)


def _decode(key: bytes, value: bytes | None) -> CoordinatorRecord:
    """Decode a record of __consumer_offsets by Kafka 3.9's schemas, or else by a later release's.

    Errors: WireError.
    """
    try:
        return decode_coordinator_record("offsets", key, value)
    except WireError:
        return decode_coordinator_record("offsets", key, value, _LATER_RELEASE)


def _commit_row(commit: Commit) -> OutputRow:
    """Return the row of a commit; a tombstone, by which a group's offset is deleted, has no offset.

    Its time is the record's.
    """
    value = commit.value
    commit_ms = commit.source.timestamp_ms if value is None else value.commit_timestamp
    return {
        "group": commit.group_id,
        "topic": commit.partition.topic,
        "partition": commit.partition.partition,
        "committed_offset": None if value is None else value.offset,
        "commit_timestamp_ms": commit_ms,
        "committed_at": time_text(commit_ms),
        "metadata": None if value is None else value.metadata,
        "log_partition": commit.source.partition,
        "log_offset": commit.source.offset,
    }
