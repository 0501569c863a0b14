"""Which leader epoch starts at which offset of one log, in memory.

```
epochs   0    3    4          rising strictly, and so do
starts   0   87   90          the offsets of their first records   (L4)
         |----|---|------->   an epoch ends where the next one starts, the last at the log's end
```

The rules themselves stand beside the file's codec in `leader_epoch_checkpoint.py`. Every method
that changes something says so, and its caller writes the file: `encode` is the content.

Source: REPL-1; Kafka's LeaderEpochFileCache; KIP-101, KIP-279.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.log.leader_epoch_checkpoint import (
    UNDEFINED_EPOCH,
    EpochStart,
    assigned,
    encode_leader_epochs,
    end_offset_for,
    truncated_from_end,
    truncated_from_start,
)


class EpochCache:
    """The leader epochs of one log."""

    __slots__ = ("entries", "latest_epoch")

    def __init__(self, entries: Iterable[EpochStart] = ()) -> None:
        self.entries: tuple[EpochStart, ...] = ()
        #: The newest epoch, −1 without one; batches of the same epoch need no look further.
        self.latest_epoch = UNDEFINED_EPOCH
        for epoch_start in entries:
            self.assign(epoch_start.epoch, epoch_start.start_offset)

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Note where an epoch starts, dropping what that contradicts; tells whether it changed."""
        assert epoch >= 0
        assert start_offset >= 0
        return self._become(assigned(self.entries, EpochStart(epoch, start_offset)))

    def truncate_from_end(self, end_offset: int) -> bool:
        """Drop epochs that start at or above the log's new end; tells whether it changed."""
        return self._become(truncated_from_end(self.entries, end_offset))

    def truncate_from_start(self, start_offset: int) -> bool:
        """Drop epochs that ended at or below the log's new start; tells whether it changed.

        The epoch of the first record left is moved up to it.
        """
        return self._become(truncated_from_start(self.entries, start_offset))

    def clear(self) -> bool:
        """Forget everything; tells whether there was something."""
        return self._become(())

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return the largest known epoch ≤ `epoch` and its end offset (exclusive), or (−1, −1)."""
        return end_offset_for(self.entries, epoch, log_end_offset)

    def epoch_for_offset(self, offset: int) -> int | None:
        """Return the epoch in which an offset was written, None before the first known one."""
        epoch = None
        for epoch_start in self.entries:
            if epoch_start.start_offset > offset:
                break
            epoch = epoch_start.epoch
        return epoch

    def encode(self) -> bytes:
        """Return the content of `leader-epoch-checkpoint`."""
        return encode_leader_epochs(self.entries)

    def _become(self, entries: tuple[EpochStart, ...]) -> bool:
        if entries == self.entries:
            return False
        self.entries = entries
        self.latest_epoch = entries[-1].epoch if entries else UNDEFINED_EPOCH
        return True
