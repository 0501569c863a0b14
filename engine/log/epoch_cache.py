"""The start offset of each leader epoch of one log, in memory.

```
epochs   0    3    4          rising strictly, and so do
starts   0   87   90          the offsets of their first records   (L4)
         |----|---|------->   an epoch ends where the next one starts, the last at the log's end
```

The rules and the file's codec are in `leader_epoch_checkpoint.py`. Every method that changes
entries returns True, and its caller writes the file: `encode` returns the content.

A follower of a compacted log may find that an epoch's first batch does not follow its log end
offset: compaction removed the batches between, and their epochs are unknown. Such an epoch starts
at the log end offset, until its leader reports the end of the epoch before it. That also holds for
the first epoch of a log without epochs, if the first batch begins above the log end offset. That
the start is not exact is known in memory only, not after a restart.

Source: REPL-1; Kafka's LeaderEpochFileCache; KIP-101, KIP-279.
Differs: in Kafka such an epoch starts at the first remaining batch. A follower that led the epoch
before then keeps records between that no other replica has, see `fetch_state.py`, rule 7.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from engine.log.directory.leader_epoch_checkpoint import (
    UNDEFINED_EPOCH,
    EpochStart,
    assign_epoch,
    encode_leader_epochs,
    end_offset_for,
    truncate_from_start,
    truncated_from_end,
)


class EpochGap(NamedTuple):
    """An epoch whose first batches were compacted away, with its possible starts, both inclusive.

    It starts where the leader's epoch `epoch_before` ends. `is_first`: the log has no epoch before
    it, so that `epoch_before` is `epoch` - 1, which the leader may not have.
    """

    epoch_before: int
    epoch: int
    lowest_start_offset: int
    highest_start_offset: int
    is_first: bool = False


class EpochCache:
    """The leader epochs of one log."""

    __slots__ = ("_highest_starts", "entries", "latest_epoch")

    def __init__(self, entries: Iterable[EpochStart] = ()) -> None:
        """Assign the epochs of a checkpoint, in the order of their start offsets."""
        #: Epochs with their start offsets, both ascending; replaced and never changed in place.
        self.entries: tuple[EpochStart, ...] = ()
        #: For epochs whose exact start is unknown, because batches before it are missing: the
        #: offset of the first remaining batch, which is the highest possible start. Removed when
        #: the leader has reported the start, and by truncations.
        self._highest_starts: dict[int, int] = {}
        #: The newest epoch, −1 without one; batches of the same epoch need no further check.
        self.latest_epoch = UNDEFINED_EPOCH
        for epoch_start in entries:
            self.assign(epoch_start.epoch, epoch_start.start_offset)

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Set the start offset of an epoch, and remove contradicting entries.

        These have the same or a later epoch, or start at or after it. Returns True if an entry
        changed.
        """
        assert epoch >= 0
        assert start_offset >= 0
        return self._replace_entries(assign_epoch(self.entries, EpochStart(epoch, start_offset)))

    def assign_next_batch(self, end_offset: int, epoch: int, first_offset: int) -> None:
        """Record the leader epoch of the next batch, for a log that ends at `end_offset`.

        `first_offset` is the batch's. After a gap in the offsets the epoch starts where the log
        ended, or just after the last epoch without records; `first_gap` then describes the gap.
        Epoch 0 starts at its first batch, because no epoch ends there.
        """
        start_offset = first_offset
        if self.entries and epoch > self.latest_epoch:
            start_offset = max(end_offset, self.entries[-1].start_offset + 1)
        elif not self.entries and epoch > 0:
            start_offset = end_offset
        self.assign(epoch, min(start_offset, first_offset))
        if start_offset < first_offset:
            self._highest_starts[epoch] = first_offset

    @property
    def first_gap(self) -> EpochGap | None:
        """Return the first epoch whose start offset is not exactly known, None without one.

        A gap in the offsets before its first batch, as compaction leaves, hides the start. The
        follower asks the leader for it with OffsetForLeaderEpoch.
        """
        if not self._highest_starts:
            return None
        epoch, start_offset = self.entries[0]
        highest = self._highest_starts.get(epoch)
        if highest is not None:
            return EpochGap(epoch - 1, epoch, start_offset, highest, is_first=True)
        for before, (epoch, start_offset) in pairwise(self.entries):
            highest = self._highest_starts.get(epoch)
            if highest is not None:
                return EpochGap(before.epoch, epoch, start_offset, highest)
        return None

    def close_gap(self, gap: EpochGap, start_offset: int) -> bool:
        """Set the start of a gap's epoch to `start_offset`, which the leader returned.

        The start is limited to the range that the gap allows. Returns True if an entry changed.
        """
        del self._highest_starts[gap.epoch]
        start_offset = min(max(start_offset, gap.lowest_start_offset), gap.highest_start_offset)
        return self._replace_entries(
            tuple(
                EpochStart(gap.epoch, start_offset) if entry.epoch == gap.epoch else entry
                for entry in self.entries
            )
        )

    def truncate_from_end(self, end_offset: int) -> bool:
        """Remove epochs that start at or above the new log end offset; return True if any did.

        Unknown starts of epochs keep their present value: there is no `first_gap` afterwards.
        """
        self._highest_starts.clear()
        return self._replace_entries(truncated_from_end(self.entries, end_offset))

    def truncate_from_start(self, start_offset: int) -> bool:
        """Remove epochs that end at or below the new log start offset; return True if changed.

        The epoch of the first remaining record then starts at that offset.
        """
        self._highest_starts.clear()
        return self._replace_entries(truncate_from_start(self.entries, start_offset))

    def clear(self) -> bool:
        """Remove all epochs; return True if there were any."""
        self._highest_starts.clear()
        return self._replace_entries(())

    def take_over(self, replaced: EpochCache) -> bool:
        """Copy the epochs of the log that this future log replaces; return True if they differ."""
        self._highest_starts = dict(replaced._highest_starts)
        return self._replace_entries(replaced.entries)

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return the largest known epoch ≤ `epoch` and its end offset (exclusive), or (−1, −1)."""
        return end_offset_for(self.entries, epoch, log_end_offset)

    def epoch_for_offset(self, offset: int) -> int | None:
        """Return the epoch in which an offset was written, None below the first known epoch."""
        epoch = None
        for epoch_start in self.entries:
            if epoch_start.start_offset > offset:
                break
            epoch = epoch_start.epoch
        return epoch

    def encode(self) -> bytes:
        """Return the content of `leader-epoch-checkpoint`."""
        return encode_leader_epochs(self.entries)

    def _replace_entries(self, entries: tuple[EpochStart, ...]) -> bool:
        """Replace all entries; return True if they differ, so that the caller writes them."""
        if entries == self.entries:
            return False
        self.entries = entries
        self.latest_epoch = entries[-1].epoch if entries else UNDEFINED_EPOCH
        return True
