"""Points in a partition as they are written on the command line.

| text | point |
|---|---|
| `start`, `earliest`, `beginning` | the first record in the log |
| `end`, `latest` | after the last record |
| `1234` | this offset |
| `-100` | this number of records before the end |
| `-1h`, `yesterday`, `@1767225600000`, `2026-01-01` | from this time on, see `times.py` |
| `max-timestamp` | the record with the largest timestamp |
| `earliest-local` | the first record on the brokers' own disks |
| `latest-tiered` | the last record in remote storage |
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.offsets import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    list_offsets,
)
from engine.errors import EngineError
from engine.model import TopicPartition
from kctl.arguments import UnreadableArgument
from kctl.iso_times import UnreadableTime, parse_time_ms
from kctl.numbers import parse_whole_number

_WORDS = {
    "start": EARLIEST,
    "earliest": EARLIEST,
    "beginning": EARLIEST,
    "end": LATEST,
    "latest": LATEST,
    "max-timestamp": MAX_TIMESTAMP,
    "earliest-local": EARLIEST_LOCAL,
    "latest-tiered": LATEST_TIERED,
}
_EXPECTED = "start, end, an offset, -COUNT, -1h, yesterday, @MILLISECONDS or 2026-01-31T12:00:00Z"


class PointKind(Enum):
    """Kinds of offset points."""

    OFFSET = "offset"
    #: A number of offsets before the end.
    TAIL = "tail"
    #: A timestamp in ms, or a negative sentinel of `engine.client.offsets`.
    TIMESTAMP = "timestamp"


class Point(NamedTuple):
    """A point that can be resolved to an offset of each partition."""

    kind: PointKind
    number: int

    @property
    def is_time(self) -> bool:
        """Return True for a time, False for offsets, tails and points such as `end`."""
        return self.kind is PointKind.TIMESTAMP and self.number >= 0


def parse_point(text: str, now_ms: int) -> Point:
    """Return the point in a partition that an argument means; ages count back from `now_ms`.

    Errors: UnreadableArgument.
    """
    if text in _WORDS:
        return Point(PointKind.TIMESTAMP, _WORDS[text])
    if text.isdecimal():
        return Point(PointKind.OFFSET, parse_whole_number(text, "an offset"))
    if text.startswith("-") and text[1:].isdecimal():
        return Point(PointKind.TAIL, parse_whole_number(text[1:], "a count of records"))
    try:
        return Point(PointKind.TIMESTAMP, max(parse_time_ms(text, now_ms), 0))
    except UnreadableTime:
        raise UnreadableArgument("a point in a partition", text, _EXPECTED) from None


class OffsetLookup:
    """Resolves points to offsets of some partitions; requests each offset once.

    So the points of one command are consistent while the topic is written to.
    """

    def __init__(
        self,
        client: KafkaClient,
        partitions: Iterable[TopicPartition],
        *,
        read_committed: bool = False,
    ) -> None:
        """Create a look-up for these partitions; it sends its requests when asked.

        With `read_committed` the end is the last stable offset.
        """
        self._client = client
        self._partitions = list(partitions)
        self._read_committed = read_committed
        #: Responses of the brokers by timestamp or sentinel.
        self._known: dict[int, dict[TopicPartition, int | EngineError]] = {}

    def resolve(self, point: Point) -> dict[TopicPartition, int | EngineError]:
        """Return the offset of a point, or an error, for each partition.

        | point | where no such record exists |
        |---|---|
        | a time | the end: all records are older |
        | `max-timestamp` | the start: there is no record |
        | `latest-tiered` | the start: no record is in remote storage |
        | `earliest-local` | the start |

        A given offset is not checked; a tail that is longer than the partition begins at its start.

        Source: KIP-734, KIP-1005; `ReplicaManager.fetchOffset` for what −1 means.
        """
        return {
            partition: self._request_offsets(EARLIEST)[partition] if offset is None else offset
            for partition, offset in self.find(point).items()
        }

    def find(self, point: Point) -> dict[TopicPartition, int | EngineError | None]:
        """Return each partition's offset or error, as `resolve` does, for one point.

        The offset is None where a special point, such as `latest-tiered`, does not exist.
        """
        if point.kind is PointKind.OFFSET:
            return dict.fromkeys(self._partitions, point.number)
        if point.kind is PointKind.TAIL:
            return {
                partition: self._tail_offset(partition, point.number)
                for partition in self._partitions
            }
        offsets = self._request_offsets(point.number)
        return {p: self._found(p, offset, point) for p, offset in offsets.items()}

    def _found(
        self, partition: TopicPartition, offset: int | EngineError, point: Point
    ) -> int | EngineError | None:
        """Return a looked-up offset; if it is -1, the log end for a point in time, else None.

        An error is returned as it is.
        """
        if isinstance(offset, EngineError) or offset >= 0:
            return offset
        return self._request_offsets(LATEST)[partition] if point.is_time else None

    def _tail_offset(self, partition: TopicPartition, count: int) -> int | EngineError:
        """Return the offset `count` before a partition's end, but not below its log start.

        It returns the error if the end could not be looked up.
        """
        end, start = (
            self._request_offsets(LATEST)[partition],
            self._request_offsets(EARLIEST)[partition],
        )
        if isinstance(end, EngineError):
            return end
        return max(end - count, 0 if isinstance(start, EngineError) else start)

    def _request_offsets(self, timestamp: int) -> dict[TopicPartition, int | EngineError]:
        """Return each partition's offset at a timestamp or negative sentinel, or its error.

        Each timestamp is requested once.
        """
        if timestamp not in self._known:
            results = list_offsets(
                self._client,
                dict.fromkeys(self._partitions, timestamp),
                read_committed=self._read_committed,
            )
            self._known[timestamp] = {
                partition: result if isinstance(result, EngineError) else result.offset
                for partition, result in results.items()
            }
        return self._known[timestamp]
