"""ElectLeaders: preferred elections, and unclean elections for partitions without a live leader.

| election | needed if | elected | if that fails |
|---|---|---|---|
| preferred | the leader is not the preferred leader | the preferred leader, if alive and in the ISR | PREFERRED_LEADER_NOT_AVAILABLE |
| unclean | the leader is not live | as OFFLINE with unclean allowed, independent of the topic setting | ELIGIBLE_LEADERS_NOT_AVAILABLE |

If no election is needed, the response is ELECTION_NOT_NEEDED, and nothing is written.

Source: ZN:preferred-election, KIP-183, KIP-460; KafkaController.processReplicaLeaderElection.
Differs: for a partition that never had a leader the response has the error of the last column, and
for a failed store UNKNOWN_SERVER_ERROR; Kafka sends no response.
"""  # noqa: E501 - a table

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from engine.controller.context import PartitionLeadership
from engine.controller.elections import ElectionReason
from engine.controller.machines import Machines
from engine.controller.states import PartitionPhase
from engine.kafka_errors import (
    ELECTION_NOT_NEEDED,
    ELIGIBLE_LEADERS_NOT_AVAILABLE,
    INVALID_TOPIC_EXCEPTION,
    NONE,
    NOT_CONTROLLER,
    PREFERRED_LEADER_NOT_AVAILABLE,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from engine.model import TopicPartition
from engine.znode.values import NO_LEADER

_PREFERRED_RULE = "PreferredReplicaPartitionLeaderElectionStrategy"
_UNCLEAN_RULE = "OfflinePartitionLeaderElectionStrategy(true)"


class PartitionElection(NamedTuple):
    """The result for one partition: the elected leader, or an error."""

    code: int = NONE
    message: str | None = None
    leader_id: int = NO_LEADER


_UNKNOWN = PartitionElection(UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
_GOING = PartitionElection(INVALID_TOPIC_EXCEPTION, "The topic is being deleted")
_NOT_NEEDED = PartitionElection(
    ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
)


class RequestedElection:
    """One ElectLeaders request."""

    def __init__(
        self, machines: Machines, partitions: Iterable[TopicPartition], *, is_unclean: bool
    ) -> None:
        """Create the handler of one ElectLeaders request; duplicate partitions count once."""
        self._machines = machines
        self._context = machines.context
        self._partitions = list(dict.fromkeys(partitions))
        self._is_unclean = is_unclean

    def refusal(self) -> dict[TopicPartition, PartitionElection]:
        """Return the results of a broker that is not the controller."""
        return dict.fromkeys(self._partitions, PartitionElection(NOT_CONTROLLER))

    def failure(self) -> dict[TopicPartition, PartitionElection]:
        """Return the results after a failure of the metadata store."""
        return dict.fromkeys(self._partitions, PartitionElection(UNKNOWN_SERVER_ERROR))

    async def handle(self) -> dict[TopicPartition, PartitionElection]:
        """Run the elections that are needed.

        Returns a result per partition, in the request's order.
        """
        results = {partition: self._check_election(partition) for partition in self._partitions}
        elected = await self._machines.partitions.change_phase(
            [partition for partition, result in results.items() if result is None],
            PartitionPhase.ONLINE,
            ElectionReason.OFFLINE if self._is_unclean else ElectionReason.PREFERRED,
            allow_unclean=self._is_unclean,
        )
        return {
            partition: result or self._to_result(partition, elected.get(partition))
            for partition, result in results.items()
        }

    def _check_election(self, partition: TopicPartition) -> PartitionElection | None:
        """Return the result of a partition without an election; None if an election is needed."""
        context = self._context
        if partition.partition not in context.topics.get(partition.topic, {}):
            return _UNKNOWN
        if partition.topic in context.to_delete:
            return _GOING
        leadership = context.leaderships.get(partition)
        leader = NO_LEADER if leadership is None else leadership.state.leader
        if self._is_unclean:
            return _NOT_NEEDED if context.is_live(leader) else None
        preferred = context.assignment(partition).replicas[:1]
        return _NOT_NEEDED if (leader,) == preferred else None

    def _to_result(
        self, partition: TopicPartition, written: PartitionLeadership | str | None
    ) -> PartitionElection:
        """Return the result of an election: the leader's id, or the error if none was elected.

        `written` is the new state; a text or None if there is none.
        """
        if isinstance(written, PartitionLeadership):
            return PartitionElection(leader_id=written.state.leader)
        code, rule = (
            (ELIGIBLE_LEADERS_NOT_AVAILABLE, _UNCLEAN_RULE)
            if self._is_unclean
            else (PREFERRED_LEADER_NOT_AVAILABLE, _PREFERRED_RULE)
        )
        return PartitionElection(
            code, f"Failed to elect leader for partition {partition} under strategy {rule}"
        )
