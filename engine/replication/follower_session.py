"""A follower's fetch session at its leader: each partition's position, and the values sent last.

```
 request ─> positions ─┬─ as it was sent, at the log's end ─> left out, the follower noted
                       └─ changed ─────────────────────────> read, answered, noted as sent
```

A follower of another process has a session by KIP-227 (`engine.api.fetch_session`), one of the same
process a `LocalSession`. Both are read here by the same rules; only their requests and responses
differ. A session is sent only changes, so a partition that has not changed need not
be read to leave it out. The follower's offset in its fetch is noted all the same.

Source: REPL-5, FET-7, PUR-5; D27.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from engine.model import TopicPartition
from engine.replication.partition import Partition
from engine.replication.partition_types import FetchSpec


class SessionPosition(Protocol):
    """A session's fetch position in a partition, and the offsets that were sent last.

    Offsets are −1 where that was an error, or nothing.
    """

    spec: FetchSpec
    high_watermark: int
    log_start_offset: int

    def note_offsets(self, high_watermark: int, log_start_offset: int) -> bool:
        """Note the offsets that are sent of a partition; return whether they are news."""
        ...


class LocalPosition:
    """A partition in the session of a follower of the same process."""

    __slots__ = ("high_watermark", "log_start_offset", "spec")

    def __init__(self, spec: FetchSpec) -> None:
        self.spec = spec
        self.high_watermark = -1
        self.log_start_offset = -1

    def note_offsets(self, high_watermark: int, log_start_offset: int) -> bool:
        """Note the offsets that are sent of a partition; return whether they are news."""
        is_news = (self.high_watermark, self.log_start_offset) != (high_watermark, log_start_offset)
        self.high_watermark, self.log_start_offset = high_watermark, log_start_offset
        return is_news


class LocalSession:
    """The session of a follower of the same process, which names it in each request."""

    __slots__ = ("_positions", "owner")

    def __init__(self, owner: object) -> None:
        """Begin a session; `owner` is the leader, in one of its lives: no other has its state."""
        self.owner = owner
        self._positions: dict[TopicPartition, LocalPosition] = {}

    @property
    def positions(self) -> Mapping[TopicPartition, LocalPosition]:
        """Return the partitions of the latest request, in its order."""
        return self._positions

    def update_positions(self, specs: Iterable[tuple[TopicPartition, FetchSpec]]) -> None:
        """Update the positions by a request; partitions that it does not name are forgotten."""
        before, positions = self._positions, dict[TopicPartition, LocalPosition]()
        for key, spec in specs:
            position = before.get(key)
            if position is None:
                position = LocalPosition(spec)
            else:
                position.spec = spec
            positions[key] = position
        self._positions = positions


def is_unchanged(partition: Partition, replica_id: int, position: SessionPosition) -> bool:
    """Return True if a follower's read would find no bytes, no error and the offsets last sent.

    Spares the read of most partitions of a fetch session. `partition` must be the one that the
    broker hosts now, not an earlier object of the same name. Returns False also if only a read can
    decide.
    """
    offset, _, leader_epoch, fetched_epoch, _ = position.spec
    log = partition.log
    return (
        # A log begins nowhere above its end, so that the offset is in range.
        offset == log.log_end_offset
        and partition.high_watermark == position.high_watermark
        and log.log_start_offset == position.log_start_offset
        and partition.serves(leader_epoch)
        # The newest epoch ends with the log, and so do both logs.
        and (fetched_epoch is None or fetched_epoch == log.epochs.latest_epoch)
        and replica_id in partition.followers
    )
