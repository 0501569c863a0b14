"""A follower's fetch session at its leader: each partition's position, and the values sent last.

```
 request ─> positions ─┬─ unchanged, at the log end ─> left out; fetch offset recorded
                       └─ changed ──────────────────> read, sent, values recorded as sent
```

A follower in another process has a session by KIP-227 (`engine.api.fetch_session`), a follower in
the same process a `LocalSession`. The rules are the same; only requests and responses differ. A
response has only changes, so a partition without changes need not be read. The fetch offset of the
follower is recorded in both cases.

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

    The offsets are −1 if none were sent, or an error was.
    """

    spec: FetchSpec
    high_watermark: int
    log_start_offset: int

    def note_offsets(self, high_watermark: int, log_start_offset: int) -> bool:
        """Store the offsets that are sent for a partition; return True if they have changed."""
        ...


class LocalPosition:
    """A partition in the session of a follower in the same process."""

    __slots__ = ("high_watermark", "log_start_offset", "spec")

    def __init__(self, spec: FetchSpec) -> None:
        self.spec = spec
        self.high_watermark = -1
        self.log_start_offset = -1

    def note_offsets(self, high_watermark: int, log_start_offset: int) -> bool:
        """Store the offsets that are sent for a partition; return True if they have changed."""
        is_news = (self.high_watermark, self.log_start_offset) != (high_watermark, log_start_offset)
        self.high_watermark, self.log_start_offset = high_watermark, log_start_offset
        return is_news


class LocalSession:
    """The session of a follower in the same process, which passes it with each request."""

    __slots__ = ("_positions", "owner")

    def __init__(self, owner: object) -> None:
        """Create an empty fetch session of a follower in the same process.

        `owner` is the leader's handler since its last start: a later one does not accept the
        session.
        """
        self.owner = owner
        self._positions: dict[TopicPartition, LocalPosition] = {}

    @property
    def positions(self) -> Mapping[TopicPartition, LocalPosition]:
        """Return the partitions of the latest request, in its order."""
        return self._positions

    def update_positions(self, specs: Iterable[tuple[TopicPartition, FetchSpec]]) -> None:
        """Set the session's partitions to those of a request.

        Partitions that it lacks are removed.
        """
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
    """True if a follower's read would find no bytes, no error and the offsets that were sent last.

    Saves the read of most partitions of a fetch session. `partition` must be the object that the
    broker hosts now, not an earlier one of the same name. Returns False also if only a read can
    decide.
    """
    offset, _, leader_epoch, fetched_epoch, _ = position.spec
    log = partition.log
    return (
        # The log start offset is never above the end, so the offset is in range.
        offset == log.log_end_offset
        and partition.high_watermark == position.high_watermark
        and log.log_start_offset == position.log_start_offset
        and partition.serves(leader_epoch)
        # Both logs end in the same epoch at the same offset.
        and (fetched_epoch is None or fetched_epoch == log.epochs.latest_epoch)
        and replica_id in partition.followers
    )
