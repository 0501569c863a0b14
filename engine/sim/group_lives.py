"""Assignment of each group generation to a life of the group, from `__consumer_offsets` records.

```
generation 1 {a}   generation 2 {}   tombstone   generation 1 {b}
└──────────── life 0 ────────────┘               └─── life 1 ───┘
```

A group without members and offsets ends with a tombstone, for example when the only topic is
deleted for which it has committed offsets. A later group of the same name counts from 1 again.

Source: GroupMetadataManager.cleanupGroupMetadata of 3.9.1.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from engine.groups.ports import GroupRecord
from engine.groups.records import decode_group_record, is_group
from engine.records.batch import BatchView
from engine.wire import messages


class Generation(NamedTuple):
    """A generation of a group; a later one compares as greater."""

    life: int
    generation_id: int


class GroupLives:
    """The lives of all groups of a run."""

    def __init__(self) -> None:
        self._ended_counts: Counter[str] = Counter()
        self._lives: dict[tuple[str, int, str], int] = {}

    def take(self, batch: BatchView) -> None:
        """Apply the next committed batch of a partition of `__consumer_offsets`."""
        for record in () if batch.is_control else batch.records():
            value = None if record.value is None else bytes(record.value)
            decoded = decode_group_record(GroupRecord(bytes(record.key or b""), value))
            if is_group(decoded):
                self._apply_group(decoded.key.group, decoded.value)

    def _apply_group(self, group_id: str, value: object) -> None:
        """Record in which life of the group each member's generation is.

        A tombstone of the group ends its present life.
        """
        if not isinstance(value, messages.GroupMetadataValue):
            self._ended_counts[group_id] += 1
            return
        life = self._ended_counts[group_id]
        for member in value.members:
            self._lives[group_id, value.generation, member.member_id] = life

    def is_written(self, group_id: str, generation_id: int, member_id: str) -> bool:
        """Return True if a committed record has the generation with this member."""
        return (group_id, generation_id, member_id) in self._lives

    def generation(self, group_id: str, generation_id: int, member_id: str) -> Generation:
        """Return the generation that a member is in, with the life of its group.

        Without a record of the generation, it belongs to the present life.
        """
        key = group_id, generation_id, member_id
        return Generation(self._lives.get(key, self._ended_counts[group_id]), generation_id)
