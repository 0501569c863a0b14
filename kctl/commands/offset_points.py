"""Points in a partition as a person types them.

| text | point |
|---|---|
| `start`, `earliest`, `beginning` | the first record that is there |
| `end`, `latest` | behind the last one |
| `1234` | this offset |
| `-100` | so many records before the end |
| `-1h`, `yesterday`, `@1767225600000`, `2026-01-01` | from this time on, see `times.py` |
| `max-timestamp`, `earliest-local`, `latest-tiered` | as the broker means them |
"""

from __future__ import annotations

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
from kctl.commands.times import UnreadableTime, parse_time_ms
from kctl.words import UnreadableWord

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
    """How a point is found."""

    OFFSET = "offset"
    #: So many before the end.
    TAIL = "tail"
    #: A time in ms, or one of the negative numbers of `engine.client.offsets`.
    TIMESTAMP = "timestamp"


class Point(NamedTuple):
    """A point in every partition."""

    kind: PointKind
    number: int

    @property
    def is_time(self) -> bool:
        """Tell whether it is a time of day."""
        return self.kind is PointKind.TIMESTAMP and self.number >= 0


def parse_point(text: str, now_ms: int) -> Point:
    """Return the point that a text means; raises UnreadableWord."""
    if text in _WORDS:
        return Point(PointKind.TIMESTAMP, _WORDS[text])
    if text.isdecimal():
        return Point(PointKind.OFFSET, int(text))
    if text.startswith("-") and text[1:].isdecimal():
        return Point(PointKind.TAIL, int(text[1:]))
    try:
        return Point(PointKind.TIMESTAMP, max(parse_time_ms(text, now_ms), 0))
    except UnreadableTime:
        raise UnreadableWord("a point in a partition", text, _EXPECTED) from None


def resolve(
    client: KafkaClient,
    partitions: list[TopicPartition],
    point: Point,
    *,
    read_committed: bool = False,
) -> dict[TopicPartition, int | EngineError]:
    """Return the offset of a point in each partition.

    A time after the last record is the end. Offsets are not checked; the tail of a short
    partition starts where the partition does.
    """
    if point.kind is PointKind.OFFSET:
        return dict.fromkeys(partitions, point.number)
    is_tail = point.kind is PointKind.TAIL
    asked = LATEST if is_tail else point.number
    offsets = _offsets(client, partitions, asked, read_committed=read_committed)
    if is_tail:
        starts = _offsets(client, partitions, EARLIEST)
        for partition, end in offsets.items():
            start = starts[partition]
            if isinstance(end, int) and isinstance(start, int):
                offsets[partition] = max(end - point.number, start)
        return offsets
    late = [p for p, offset in offsets.items() if isinstance(offset, int) and offset < 0]
    if late:
        offsets |= _offsets(client, late, LATEST, read_committed=read_committed)
    return offsets


def _offsets(
    client: KafkaClient,
    partitions: list[TopicPartition],
    timestamp: int,
    *,
    read_committed: bool = False,
) -> dict[TopicPartition, int | EngineError]:
    results = list_offsets(
        client, dict.fromkeys(partitions, timestamp), read_committed=read_committed
    )
    return {
        partition: result if isinstance(result, EngineError) else result.offset
        for partition, result in results.items()
    }
