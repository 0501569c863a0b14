"""The result of loading a log, from which a `LocalLog` is created."""

from __future__ import annotations

from engine.log.epoch_store import EpochStore
from engine.log.producer_snapshots import ProducerSnapshots
from engine.log.producer_state import ProducerState
from engine.log.segment_list import SegmentList


class LoadedLog:
    """The parts that a loader has read, from which a `LocalLog` is created."""

    __slots__ = (
        "epochs",
        "log_end_offset",
        "log_start_offset",
        "producers",
        "recovery_point",
        "segments",
        "snapshots",
        "topic_id",
    )

    def __init__(
        self,
        segments: SegmentList,
        snapshots: ProducerSnapshots,
        epochs: EpochStore,
        *,
        producers: ProducerState | None = None,
        log_start_offset: int = 0,
        log_end_offset: int = 0,
        recovery_point: int = 0,
        topic_id: str | None = None,
    ) -> None:
        """Keep the parts of a log; the defaults are those of an empty log."""
        self.segments = segments
        self.snapshots = snapshots
        self.epochs = epochs
        self.producers = producers or ProducerState()
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.recovery_point = recovery_point
        self.topic_id = topic_id
