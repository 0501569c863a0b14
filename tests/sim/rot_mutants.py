"""Planted faults of bit rot: checksums that nobody looks at."""

from __future__ import annotations

import pytest

from engine.log import local_log, replica_chunks
from engine.log.recovery import segment_replay


class _AnyChecksum(int):
    """A checksum that is taken for the right one; the header may say another."""

    __hash__ = int.__hash__

    def __eq__(self, _other: object) -> bool:
        return True

    def __ne__(self, _other: object) -> bool:
        return False


def followers_take_damaged_batches(patch: pytest.MonkeyPatch) -> None:
    """Append what a leader gives without a look at its checksum."""
    for module in (replica_chunks, local_log):
        patch.setattr(module, "crc32c", lambda _data: _AnyChecksum())


def recovery_goes_past_damage(patch: pytest.MonkeyPatch) -> None:
    """Recover a log without a look at its checksums."""
    patch.setattr(segment_replay, "crc32c", lambda _data: _AnyChecksum())
