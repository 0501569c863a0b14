"""Rules about the generations, members and committed offsets of consumer groups.

| rule | checked | claim |
|---|---|---|
| G1 | when a member gets its partitions | in one generation each partition has one owner |
| G2 | when a commit is acknowledged | its member is in the latest generation |
| G4 | at the end | each committed offset is kept, unless a newer commit replaced it |
| G5 | at the end | stopped members are no longer in their group |

A group that ended and was created again counts its generations from 1: see `group_lives.py`. A
commit is newer than another one if it was sent after the other's response. Nothing is checked any
more once a partition of `__consumer_offsets` has lost records where Kafka loses them too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.kafka_errors import (
    COORDINATOR_LOAD_IN_PROGRESS,
    ILLEGAL_GENERATION,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
)
from engine.model import TopicPartition
from engine.sim.group_lives import Generation, GroupLives
from engine.sim.histories import History
from engine.sim.members import Commit

OFFSETS_TOPIC = "__consumer_offsets"
#: Error codes of commits that were certainly not written.
_REFUSED = frozenset(
    (COORDINATOR_LOAD_IN_PROGRESS, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS, UNKNOWN_MEMBER_ID)
)


class GroupRules:
    """Checks all groups of a run."""

    def __init__(
        self,
        histories: Mapping[TopicPartition, History],
        broke: Callable[[str, str, TopicPartition | None], None],
    ) -> None:
        """Create the rules; `broke` reports a violation by its rule, text and partition."""
        self._histories = histories
        self._broke = broke
        self.lives = GroupLives()
        #: The member to which a generation assigned a partition; there must be only one.
        self._owners: dict[tuple[str, Generation, TopicPartition], str] = {}
        #: Latest generation of each group in which a member received its partitions.
        self._latest: dict[str, Generation] = {}
        #: Commits of each group, in the order in which they were sent.
        self._commits: dict[str, list[Commit]] = {}
        #: Number of the last event (request or response of a commit), and of the last commit.
        self._event_count = 0
        self._commit_count = 0

    @property
    def is_excused(self) -> bool:
        """Return True if a coordinator's log may have lost acknowledged records."""
        return any(
            bool(history.losses or history.forks or history.excuse)
            for key, history in self._histories.items()
            if key.topic == OFFSETS_TOPIC
        )

    @property
    def acknowledged_count(self) -> int:
        """Return the number of offset commits that were acknowledged."""
        return sum(c.code == NONE for commits in self._commits.values() for c in commits)

    def check_assignment(
        self, group_id: str, generation_id: int, member_id: str, partitions: list[TopicPartition]
    ) -> None:
        """Check rule G1: each partition belongs to one member in a generation.

        Only generations with a committed record count. A broker that has not heard of its
        successor may load a generation whose record was never replicated, and answers its members
        from memory, in Kafka too.
        """
        if not self.lives.is_written(group_id, generation_id, member_id):
            return
        generation = self.lives.generation(group_id, generation_id, member_id)
        self._latest[group_id] = max(generation, self._latest.get(group_id, generation))
        for partition in partitions:
            key = group_id, generation, partition
            owner = self._owners.setdefault(key, member_id)
            if owner != member_id and not self.is_excused:
                text = f"{group_id}, generation {generation_id}: {partition} is given to {owner}"
                self._broke("G1", f"{text} and {member_id}", None)

    def record_commit(
        self, group_id: str, partition: TopicPartition, generation_id: int, member_id: str
    ) -> Commit:
        """Record that a member sends an offset commit now; return the numbered commit.

        The numbers increase over all commits of a run and identify them.
        """
        self._commit_count += 1
        generation = self.lives.generation(group_id, generation_id, member_id)
        is_outdated = generation < self._latest.get(group_id, generation)
        commit = Commit(partition, self._commit_count, self._next_event(), is_outdated=is_outdated)
        self._commits.setdefault(group_id, []).append(commit)
        return commit

    def record_response(self, commit: Commit, code: int) -> None:
        """Record the response to a commit, and check rule G2.

        No commit that was sent in a generation which was over succeeds.
        """
        commit.ended_at, commit.code = self._next_event(), code
        if code == NONE and commit.is_outdated and not self.is_excused:
            text = f"{commit.partition} {commit.number} was sent in a generation that was over"
            self._broke("G2", text, None)

    def _next_event(self) -> int:
        """Return a number for an event; the numbers give the order of requests and responses."""
        self._event_count += 1
        return self._event_count

    def check_end(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Check rule G4: a group's final offsets belong to commits that were not refused."""
        if self.is_excused:
            return
        commits = self._commits.get(group_id, [])
        for partition in sorted({commit.partition for commit in commits}):
            of_partition = [commit for commit in commits if commit.partition == partition]
            if fault := offset_fault(of_partition, offsets.get(partition)):
                self._broke("G4", f"{group_id}, {partition}: {fault}", None)


def offset_fault(commits: list[Commit], offset: int | None) -> str:
    """Return as text why a final offset contradicts the commits; empty if it does not."""
    acknowledged = [commit for commit in commits if commit.code == NONE]
    if offset is None or offset < 0:
        return f"{acknowledged[-1].number} was committed, and nothing is" if acknowledged else ""
    found = next((commit for commit in commits if commit.number == offset), None)
    if found is None:
        return f"{offset} is committed, by nobody"
    if found.code in _REFUSED:
        return f"{offset} is committed, and was refused with code {found.code}"
    for commit in acknowledged:
        if found.ended_at is not None and found.ended_at < commit.sent_at:
            return f"{offset} is committed, and {commit.number} was after it"
    return ""
