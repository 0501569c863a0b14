"""Planted faults of the calls between brokers of one process: no network is between them."""

from __future__ import annotations

from typing import Any

import pytest

from engine.replication.follower_encoders import LocalEncoder


def given_records_count_as_committed(patch: pytest.MonkeyPatch) -> None:
    """Tell a follower of the same process that all it is given is committed."""
    send = LocalEncoder.send

    def committed(
        self: LocalEncoder, fetch: Any, partition: Any, position: Any, records: Any
    ) -> bool:
        watermark = partition.high_watermark
        partition.high_watermark = partition.log.log_end_offset
        try:
            return send(self, fetch, partition, position, records)
        finally:
            partition.high_watermark = watermark

    patch.setattr(LocalEncoder, "send", committed)
