"""Translates the committed offsets of groups from the source to the destination.

The copy has other offsets, since transaction markers, compaction and samples leave gaps. So the
offset of a group is translated while the records around it are copied:

| committed at the source | at the destination |
|---|---|
| an offset that is copied, or a gap before one | the first copied record at or after it |
| before everything that is copied, for instance deleted | the first copied record |
| in a gap at which a transaction ends | the end of the copy then, where the next record goes |
| after everything that is copied | the end of the copy |

Each is committed in the transaction whose position is after it. So an offset at or after the
position at which a copy is resumed is not translated yet, and one before it is committed: no other
state is needed.

Source: MirrorMaker's OffsetSyncStore translates to the last sync before the offset, which is
further back (Differs).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

from engine.copying.copy_plan import GroupOffset
from engine.model import TopicPartition

#: Offsets at the destination by group and partition of the source.
GroupPositions = dict[str, dict[TopicPartition, int]]


class GroupTranslation:
    """Group offsets that are not translated yet, and those translated since the last `take`."""

    def __init__(
        self, offsets: Iterable[GroupOffset], positions: Mapping[TopicPartition, int]
    ) -> None:
        """The copy resumes at `positions`; offsets before them are committed already."""
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
        """Return True while a group offset has no destination offset yet."""
        return bool(self._pending)

    def stored(self, partition: TopicPartition, offsets: Sequence[int], base_offset: int) -> None:
        """Note that the records at these source offsets were stored at `base_offset` and following.

        Pending group offsets up to the last of them are translated: a group continues at the first
        stored record at or after its offset.
        """
        self._ends[partition] = base_offset + len(offsets)
        pending = self._pending.get(partition)
        while pending and pending[0].offset <= offsets[-1]:
            one = pending.pop(0)
            self._note(one, base_offset + bisect_left(offsets, one.offset))
        if pending == []:
            del self._pending[partition]

    def unseen(self, positions: Mapping[TopicPartition, int] | None) -> list[TopicPartition]:
        """Return the partitions whose log end offsets the caller must pass to `settle`.

        In them no record was stored, but a group offset is before the source position (None: any).
        """
        return [
            key
            for key in self._pending
            if key not in self._ends and self._passed_offsets(key, positions)
        ]

    def _passed_offsets(
        self, partition: TopicPartition, positions: Mapping[TopicPartition, int] | None
    ) -> list[GroupOffset]:
        """Return a partition's untranslated group offsets below its source position.

        All of them if `positions` is None.
        """
        pending = self._pending[partition]
        if positions is None:
            return list(pending)
        return [one for one in pending if one.offset < positions.get(partition, -1)]

    def settle(
        self,
        positions: Mapping[TopicPartition, int] | None,
        ends: Mapping[TopicPartition, int],
    ) -> None:
        """Translate the pending group offsets below `positions` (None: all) to the end of the copy.

        No copied record follows them. `ends` has the log end offsets of the partitions that
        `unseen` returned.
        """
        for partition in list(self._pending):
            for one in self._passed_offsets(partition, positions):
                self._pending[partition].remove(one)
                self._note(one, self._ends.get(partition, ends.get(partition, 0)))
            if not self._pending[partition]:
                del self._pending[partition]

    def _note(self, one: GroupOffset, offset: int) -> None:
        """Keep the destination offset of a group for the next `take`."""
        self._found.setdefault(one.group_id, {})[one.partition] = offset

    def take(self) -> GroupPositions:
        """Return the group offsets translated since the last call, by group and partition.

        The partitions are those of the source, the offsets those of the destination.
        """
        found, self._found = self._found, {}
        return found
