"""Planted faults of disks and of deletion: syncs that fail unheard, too much that goes."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from engine.host.ports import LogDirOffline
from engine.log.segment import Segment
from engine.replication.partition import Partition


def failed_syncs_pass(patch: pytest.MonkeyPatch) -> None:
    """Take a segment for durable whose sync has failed."""
    sync = Segment.sync

    def hopeful(self: Segment, **more: Any) -> None:
        with suppress(LogDirOffline):
            sync(self, **more)

    patch.setattr(Segment, "sync", hopeful)


def requests_delete_all_that_is_committed(patch: pytest.MonkeyPatch) -> None:
    """Delete up to the watermark instead of the requested offset."""
    delete = Partition.delete_records_before
    patch.setattr(Partition, "delete_records_before", lambda self, offset: delete(self, -1))
