"""The topics in the store, and rules C6 and C8 about their ids, reassignments and deletion.

| rule | checked when | claim |
|---|---|---|
| C6 | a topic or a state is written | ISR ⊆ replicas; only a reassignment changes replicas |
| C6 | a reassignment ends | its target, once all of it was in sync, or the original |
| C6 | a replica is removed from a disk | a reassignment added or removed it; not in the ISR |
| C8 | a topic is created | its id is new, and does not change |
| C8 | a topic is removed | its deletion was requested; no reassignment, no replica left |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from engine.model import TopicPartition
from engine.sim.histories import History
from engine.sim.store_rollback import StoredTopics
from engine.znode.values import PartitionAssignment, TopicAssignment

Broke = Callable[[str, str], None]


class _Move:
    """A reassignment of one partition."""

    def __init__(self, row: PartitionAssignment) -> None:
        self.original, self.target = _original(row), _target(row)
        #: Whether all target replicas have been in sync at once.
        self.has_caught_up = False

    def is_like(self, row: PartitionAssignment) -> bool:
        """Return True if `row` has this reassignment and its target replicas have been in sync."""
        is_same = self.original == _original(row) and self.target == _target(row)
        return is_same and self.has_caught_up

    def check(self, isr: Iterable[int]) -> None:
        """Record whether this ISR has all target replicas, which ends the reassignment."""
        self.has_caught_up = self.has_caught_up or self.target <= set(isr)


class Topics:
    """The topics of the store, checked at each change of their nodes."""

    def __init__(
        self,
        broke: Broke,
        histories: dict[TopicPartition, History],
        *,
        has_files: Callable[[int, TopicPartition], bool],
    ) -> None:
        """Create it without topics; `has_files` returns True if a broker's disk has a replica.

        `broke` reports a violation by its rule and text.
        """
        self.by_name: dict[str, TopicAssignment] = {}
        self.rows: dict[TopicPartition, PartitionAssignment] = {}
        #: Called with the name of a topic after it or its partitions changed.
        self.on_change: Callable[[str], None] = lambda _name: None
        self._broke = broke
        self._histories = histories
        self._has_files = has_files
        #: Topics whose deletion was requested, with their ids at that time.
        self._doomed: dict[str, str | None] = {}
        #: All topic ids ever used; none may be used twice.
        self._ids: set[str] = set()
        #: Reassignments in progress.
        self._moves: dict[TopicPartition, _Move] = {}
        #: Replicas whose files may be deleted, because all target replicas have been in sync.
        self._leaving: dict[TopicPartition, set[int]] = {}

    def is_doomed(self, name: str) -> bool:
        """Return True if the deletion of a topic was requested."""
        topic = self.by_name.get(name)
        return topic is not None and name in self._doomed and topic.topic_id == self._doomed[name]

    def doomed(self) -> list[str]:
        """Return the names of topics with a stored deletion request, sorted."""
        return sorted(self._doomed)

    def moving(self) -> list[TopicPartition]:
        """Return the partitions that are being reassigned."""
        return sorted(key for key, row in self.rows.items() if _is_moving(row))

    def replicas(self, partition: TopicPartition) -> tuple[int, ...]:
        """Return the assigned replicas of a partition; empty if it does not exist."""
        row = self.rows.get(partition)
        return () if row is None else row.replicas

    def is_of(self, partition: TopicPartition, topic_id: str | None) -> bool:
        """Return True if a log with this topic id belongs to the present topic of its name."""
        topic = self.by_name.get(partition.topic)
        return topic is not None and topic_id == topic.topic_id

    # What is written

    def doom(self, name: str) -> None:
        """Record a stored deletion request; from now on the topic's records need not be kept."""
        topic = self.by_name.get(name)
        self._doomed[name] = None if topic is None else topic.topic_id
        for key in self._keys(name):
            if key in self._histories:
                self._histories[key].is_doomed = True
        self.on_change(name)

    def pardon(self, name: str) -> None:
        """Record that a deletion request was removed.

        Check rule C8: the topic is deleted by then.
        """
        if self.is_doomed(name):
            self._broke("C8", f"{name} is not to be deleted any more, and still there")
        self._doomed.pop(name, None)

    def write(self, name: str, topic: TopicAssignment) -> None:
        """Check and store a written assignment of a topic.

        Rule C8: a topic id is new, and does not change; only partitions added after the deletion
        request disappear before their topic. Rule C6 is checked for each partition.
        """
        before = self.by_name.get(name)
        if before is None:
            if topic.topic_id is None or topic.topic_id in self._ids:
                self._broke("C8", f"{name} is created with the id {topic.topic_id}")
            self._ids.add(topic.topic_id or "")
        elif before.topic_id != topic.topic_id:
            self._broke("C8", f"the id of {name} was {before.topic_id}, is {topic.topic_id}")
        for key in self._keys(name):
            if key.partition not in topic.partitions:
                # Only partitions that were added after the deletion request may be removed.
                if name not in self._doomed or self._has_state(key):
                    self._broke("C8", f"{key} is gone, and its topic is not")
                del self.rows[key]
        self.by_name[name] = topic
        for index, row in topic.partitions.items():
            self._write_row(TopicPartition(name, index), row)
        if before is None or set(before.partitions) != set(topic.partitions):
            self.on_change(name)

    def _has_state(self, key: TopicPartition) -> bool:
        """Return True if a partition has a known state, or had one before a rollback."""
        history = self._histories.get(key)
        return history is not None and history.state is not None

    def remove(self, name: str) -> None:
        """Check rule C8 for a removed topic, and forget the topic.

        Its deletion was requested, and no assigned broker has its logs any more.
        """
        if name not in self._doomed:
            self._broke("C8", f"{name} is gone, and nobody asked for that")
        for key in self._keys(name):
            row = self.rows.pop(key)
            if _is_moving(row):
                self._broke("C8", f"{key} is gone during a reassignment, {row}")
            left = [broker_id for broker_id in row.replicas if self._has_files(broker_id, key)]
            if left:
                self._broke("C8", f"{key} is gone, and brokers {left} have its log")
            self._histories.pop(key, None)
            self._moves.pop(key, None)
            self._leaving.pop(key, None)
        del self.by_name[name]
        self.on_change(name)

    def roll_back(self, stored: StoredTopics) -> list[str]:
        """Replace all topics by those of an older backup; return the names of those that differ."""
        names = sorted({*self.by_name, *stored.topics})
        changed = [name for name in names if not self._is_same(name, stored)]
        moves = self._moves
        self.by_name, self.rows = dict(stored.topics), {}
        self._doomed = {name: stored.topic_id(name) for name in sorted(stored.doomed)}
        self._moves, self._leaving = {}, {}
        for name, topic in self.by_name.items():
            for index, row in topic.partitions.items():
                key = TopicPartition(name, index)
                self.rows[key] = row
                if _is_moving(row):
                    self._moves[key] = _Move(row)
                    state, before = stored.states.get(key), moves.get(key)
                    self._moves[key].has_caught_up = before is not None and before.is_like(row)
                    self.check(key, () if state is None else state.isr)
        return changed

    def _is_same(self, name: str, stored: StoredTopics) -> bool:
        """Return True if a topic has the same id, partitions and deletion state in the store."""
        topic, other = self.by_name.get(name), stored.topics.get(name)
        if topic is None or other is None:
            return False
        is_doomed = self.is_doomed(name), name in stored.doomed
        is_same = topic.topic_id == other.topic_id and is_doomed[0] == is_doomed[1]
        return is_same and set(topic.partitions) == set(other.partitions)

    def _keys(self, name: str) -> list[TopicPartition]:
        """Return the partitions of a topic; empty if it does not exist."""
        topic = self.by_name.get(name)
        return [] if topic is None else [TopicPartition(name, index) for index in topic.partitions]

    def _isr(self, key: TopicPartition) -> tuple[int, ...]:
        """Return a partition's ISR; empty before its first state."""
        history = self._histories.get(key)
        return () if history is None or history.state is None else history.state.isr

    # Moves

    def _write_row(self, key: TopicPartition, row: PartitionAssignment) -> None:
        """Store a partition's new assignment, and check rule C6.

        The reassignment must be valid, and the ISR must be within the replicas.
        """
        before = self.rows.get(key)
        if before == row:
            return
        self.rows[key] = row
        if not set(self._isr(key)) <= set(row.replicas):
            self._broke("C6", f"{key}: ISR {self._isr(key)}, assigned {row}")
        if before is not None:
            self._check_move(key, before, row)
        if not _is_moving(row):
            self._moves.pop(key, None)
            self._leaving.pop(key, None)
            return
        self._moves[key] = _Move(row)
        self.check(key, self._isr(key))

    def _check_move(
        self, key: TopicPartition, before: PartitionAssignment, row: PartitionAssignment
    ) -> None:
        """Check rule C6: only a reassignment changes replicas.

        It ends in its target or is cancelled.
        """
        move = self._moves.get(key)
        if _is_moving(row):
            if _original(row) != _original(before):
                self._broke("C6", f"{key} moves from other replicas, {before}, then {row}")
        elif move is None:
            if set(row.replicas) != set(before.replicas):
                self._broke("C6", f"{key}: {before}, then {row} without a move")
        elif set(row.replicas) == move.target and move.has_caught_up:
            pass
        elif set(row.replicas) != move.original:
            self._broke("C6", f"{key}: {before} ends as {row}, caught up: {move.has_caught_up}")

    def check(self, key: TopicPartition, isr: Iterable[int]) -> None:
        """Record a stored ISR, which may complete the target of a reassignment."""
        move = self._moves.get(key)
        if move is not None:
            move.check(isr)
            if move.has_caught_up:
                self._leaving.setdefault(key, set()).update(self.rows[key].removing_replicas)

    def is_leaving(self, key: TopicPartition, broker_id: int) -> bool:
        """Return True if a replica is being removed, and all target replicas have been in sync."""
        return broker_id in self._leaving.get(key, ())

    def check_removal(self, key: TopicPartition, broker_id: int) -> None:
        """Check rule C6: a replica leaves its broker and disk only after its reassignment."""
        row = self.rows.get(key)
        if row is None or key.topic in self._doomed or broker_id not in row.replicas:
            return
        may_go = broker_id in row.adding_replicas or self.is_leaving(key, broker_id)
        if not may_go or broker_id in self._isr(key):
            text = f"{key} is gone from {broker_id}, {row}, ISR {self._isr(key)}"
            self._broke("C6", text)


def _is_moving(row: PartitionAssignment) -> bool:
    """Return True if a partition is being reassigned."""
    return bool(row.adding_replicas or row.removing_replicas)


def _original(row: PartitionAssignment) -> frozenset[int]:
    """Return the replicas from before a reassignment, which a cancellation restores."""
    return frozenset(row.replicas) - frozenset(row.adding_replicas)


def _target(row: PartitionAssignment) -> frozenset[int]:
    """Return the replicas after a reassignment is complete."""
    return frozenset(row.replicas) - frozenset(row.removing_replicas)
