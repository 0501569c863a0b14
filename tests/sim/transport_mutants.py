"""Planted faults of the calls between brokers of one process: no network is between them."""

from __future__ import annotations

from typing import Any

import pytest

from engine.replication.parked_fetch import LocalParkedFetch


def given_records_count_as_committed(patch: pytest.MonkeyPatch) -> None:
    """Tell a follower of the same process that all it is given is committed."""
    hand_on = LocalParkedFetch._hand_on

    def committed(self: LocalParkedFetch, partition: Any, spec: Any, records: Any) -> bool:
        watermark = partition.high_watermark
        partition.high_watermark = partition.log.log_end_offset
        try:
            return hand_on(self, partition, spec, records)
        finally:
            partition.high_watermark = watermark

    patch.setattr(LocalParkedFetch, "_hand_on", committed)
