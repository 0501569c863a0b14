"""A cluster that shows an execution one look after the other, and notes what it is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from engine.client.metadata import PartitionView
from engine.client.reassignments import OngoingReassignment
from engine.errors import ApiError, EngineError
from engine.host.memory import ManualClock
from engine.host.memory_held_file import MemoryHeldFiles
from engine.host.process_identity import ProcessIdentity
from engine.model import TopicPartition
from engine.planner.plan import PartitionChange
from engine.reassign.execution import Execution
from engine.reassign.journal import MoveJournal
from engine.reassign.journal_state import Begun, ExecutionSettings
from engine.reassign.live_cluster import ObservedCluster
from engine.reassign.throttles import ThrottleSetting

JOURNAL = "/plan.journal"
WRITER = ProcessIdentity(7, "here", "kim")


def look(
    replicas: Mapping[TopicPartition, tuple[int, ...]],
    ongoing: Mapping[TopicPartition, OngoingReassignment] | None = None,
    under_min_isr: Iterable[TopicPartition] = (),
) -> ObservedCluster:
    """Return a look in which all replicas are in sync and the first leads."""
    partitions = {
        key: PartitionView(key.partition, of_key[0], 1, of_key, of_key, (), 0)
        for key, of_key in replicas.items()
    }
    return ObservedCluster(
        None, frozenset((1, 2, 3)), partitions, ongoing or {}, {}, frozenset(under_min_isr)
    )


class ScriptedCluster:
    """Shows looks in order, the last one again and again; an error is raised."""

    def __init__(self, clock: ManualClock, *looks: ObservedCluster | EngineError) -> None:
        self._clock = clock
        self._looks = list(looks)
        self.look_count = 0
        self.submitted: list[dict[TopicPartition, tuple[int, ...] | None]] = []
        self.placed: list[Mapping[int, Mapping[TopicPartition, str]]] = []
        #: What brokers answer to each request for directories; nothing once there is none left.
        self.placing: list[dict[tuple[TopicPartition, int], EngineError | None]] = []

    def read(self) -> ObservedCluster:
        self.look_count += 1
        now = self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]
        if isinstance(now, EngineError):
            raise now
        return now

    def submit(
        self, targets: Mapping[TopicPartition, tuple[int, ...] | None]
    ) -> Mapping[TopicPartition, ApiError | None]:
        self.submitted.append(dict(targets))
        return dict.fromkeys(targets)

    def move_log_dirs(self, paths: Mapping[int, Mapping[TopicPartition, str]]) -> dict[Any, Any]:
        self.placed.append(paths)
        return self.placing.pop(0) if self.placing else {}

    def elect_preferred(self, keys: Sequence[TopicPartition]) -> None: ...

    def throttles(self, settings: Iterable[ThrottleSetting]) -> dict[ThrottleSetting, Any]:
        return dict.fromkeys(settings)

    def set_throttles(self, values: Mapping[ThrottleSetting, str | None]) -> dict[Any, Any]:
        return {}

    def measure_response_ms(self) -> int:
        return 1

    def pause(self, duration_ms: int) -> None:
        self._clock.advance(duration_ms)


def execution_of(
    clock: ManualClock,
    cluster: ScriptedCluster,
    changes: Sequence[PartitionChange],
    submitted: Iterable[TopicPartition] = (),
    files: MemoryHeldFiles | None = None,
) -> Execution:
    """Return an execution of changes, of which some have been asked for by an earlier life."""
    files = files or MemoryHeldFiles()
    begun = Begun(None, tuple(changes), ExecutionSettings())
    journal = MoveJournal.create(files, JOURNAL, begun, WRITER)
    keys = list(submitted)
    if keys:
        journal.submit(keys)
    journal.close()
    journal, state = MoveJournal.reopen(files, JOURNAL, WRITER)
    return Execution(cluster, clock, journal, state)
