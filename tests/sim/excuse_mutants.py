"""Planted faults that a wide excuse hides: each does harm where something may be lost anyway."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.broker.storage import Storage
from engine.log.cleaner.offset_map import OffsetMap
from engine.log.log_flush import LogFlush
from engine.replication.partition_types import ReplicationConfig


def rolled_segments_are_not_synced(patch: pytest.MonkeyPatch) -> None:
    """Take segments for durable as soon as a roll asks for that: a power cut takes them."""
    start_flush = LogFlush.start_flush

    def start(
        self: LogFlush, offset: int, now_ms: int, on_end: Callable[[], None] | None = None
    ) -> None:
        if on_end is None:
            self._mark_flushed(offset, now_ms)
        else:
            # A move between log directories waits for the flush of its copy.
            start_flush(self, offset, now_ms, on_end)

    patch.setattr(LogFlush, "start_flush", start)


def a_higher_min_isr_is_not_heard_of(patch: pytest.MonkeyPatch) -> None:
    """Go by the lowest min.insync.replicas that a topic had since the broker started."""
    config_of = Storage._replication_config_of
    lowest: dict[tuple[Storage, str], int] = {}

    def low(self: Storage, topic: str) -> ReplicationConfig:
        config = config_of(self, topic)
        key = self, topic
        least = lowest[key] = min(lowest.get(key, 9), config.min_insync_replicas)
        return config._replace(min_insync_replicas=least)

    patch.setattr(Storage, "_replication_config_of", low)


def tombstones_go_before_their_values(patch: pytest.MonkeyPatch) -> None:
    """Keep the earlier values of some keys, whose tombstones go."""
    get = OffsetMap.get
    patch.setattr(OffsetMap, "get", lambda self, key: -1 if key[-1] % 3 == 0 else get(self, key))
