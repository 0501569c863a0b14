"""Translate the committed offsets of groups from the source to the destination.

A copy has other offsets: markers of transactions, compaction and samples leave gaps. So an offset
of a group is found while its records are copied:

| committed at the source | at the destination |
|---|---|
| an offset that is copied, or a gap before one | the first copied record at or after it |
| before all that is copied, as what is deleted | the first copied record |
| in a gap at which a transaction ends | the end of the copy by then, where the next record goes |
| behind all that is copied | the end of the copy |

Each is committed in the transaction whose position lies behind it. So one at or after the position
at which a copy goes on is still to be found, and one before it is committed: no other state is
needed.
Source: MirrorMaker's OffsetSyncStore translates to the last sync before, and so further back
(Differs).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

from engine.copying.copy_plan import GroupOffset
from engine.model import TopicPartition

#: Offsets at the destination by group and partition of the source.
GroupPositions = dict[str, dict[TopicPartition, int]]


class GroupTranslation:
    """The offsets of groups that are still to be found, and those found since the last `take`."""

    def __init__(
        self, offsets: Iterable[GroupOffset], positions: Mapping[TopicPartition, int]
    ) -> None:
        """`positions` are where the copy resumes: offsets before them are committed already."""
        #: Offsets without a translation, by partition and ascending.
        self._pending: dict[TopicPartition, list[GroupOffset]] = {}
        for one in sorted(offsets, key=lambda one: one.offset):
            if one.offset >= positions[one.partition]:
                self._pending.setdefault(one.partition, []).append(one)
        #: Translated offsets since the last `take`.
        self._found: GroupPositions = {}
        #: Offset after the last copied record of each partition at the destination.
        self._ends: dict[TopicPartition, int] = {}

    @property
    def is_needed(self) -> bool:
        """Return whether an offset is still to be found."""
        return bool(self._pending)

    def stored(self, partition: TopicPartition, offsets: Sequence[int], base_offset: int) -> None:
        """Note that records with these source offsets are stored from `base_offset` on."""
        self._ends[partition] = base_offset + len(offsets)
        pending = self._pending.get(partition)
        while pending and pending[0].offset <= offsets[-1]:
            one = pending.pop(0)
            self._note(one, base_offset + bisect_left(offsets, one.offset))
        if pending == []:
            del self._pending[partition]

    def unseen(self, positions: Mapping[TopicPartition, int] | None) -> list[TopicPartition]:
        """Return the partitions whose end `settle` must look up: no record was stored in them."""
        return [
            key for key in self._pending if key not in self._ends and self._passed(key, positions)
        ]

    def _passed(
        self, partition: TopicPartition, positions: Mapping[TopicPartition, int] | None
    ) -> list[GroupOffset]:
        """Return the group offsets before a position; all of them without positions."""
        pending = self._pending[partition]
        if positions is None:
            return list(pending)
        return [one for one in pending if one.offset < positions.get(partition, -1)]

    def settle(
        self,
        positions: Mapping[TopicPartition, int] | None,
        ends: Mapping[TopicPartition, int],
    ) -> None:
        """Put the offsets before positions, or all, at the end of the copy; see `unseen`."""
        for partition in list(self._pending):
            for one in self._passed(partition, positions):
                self._pending[partition].remove(one)
                self._note(one, self._ends.get(partition, ends.get(partition, 0)))
            if not self._pending[partition]:
                del self._pending[partition]

    def _note(self, one: GroupOffset, offset: int) -> None:
        """Note a group's offset in the destination, which `take` hands out."""
        self._found.setdefault(one.group_id, {})[one.partition] = offset

    def take(self) -> GroupPositions:
        """Return the offsets found since the last call."""
        found, self._found = self._found, {}
        return found
