"""Handle the znodes by which tools before 2.4 request reassignments and preferred elections.

| node | work | then |
|---|---|---|
| `/admin/reassign_partitions` | each partition is reassigned as by the API, without a check of live brokers | a partition is removed when it is done or refused; after the last one the node is deleted |
| `/admin/preferred_replica_election` | the preferred leaders of its partitions are elected | the node is deleted |

Both are watched, and read after a failover; a node that cannot be parsed counts as empty.

Source: ZN:reassign, ZN:preferred-election; KafkaController.processZkPartitionReassignment,
processReplicaLeaderElection.
Differs: a node that was changed by hand is read again; an invalid list of replicas is refused,
where Kafka 3.9.1 starts a reassignment that never ends.
"""  # noqa: E501 - a table

from __future__ import annotations

from collections.abc import Callable

from engine.controller.machines import Machines
from engine.controller.reassignment import Reassignment
from engine.controller.reassignment_rules import (
    check_replica_list,
    is_reassigning,
    reassigned,
    target_replicas,
)
from engine.controller.requested_election import RequestedElection
from engine.host.coroutine import PromiseCoroutine
from engine.kafka_errors import NONE
from engine.model import TopicPartition
from engine.znode.errors import NoNode
from engine.znode.json_text import InvalidZnodeValue
from engine.znode.paths import PREFERRED_REPLICA_ELECTION, REASSIGN_PARTITIONS
from engine.znode.values import decode_partitions


class LegacyZnodes:
    """Handles the controller's events about the two nodes."""

    def __init__(self, machines: Machines, reassignment: Reassignment) -> None:
        self._machines = machines
        self._context = machines.context
        self._reassignment = reassignment

    async def on_reassignment(self) -> None:
        """Start the reassignments that tools have requested in `/admin/reassign_partitions`.

        Those that are in progress already continue; refused ones are removed from the node.
        """
        await self._watch(REASSIGN_PARTITIONS, "ZkPartitionReassignment", self.on_reassignment)
        plan = {}
        failed = set()
        for partition, target in (await self._reassignment.node.targets()).items():
            if check_replica_list(target) is not None:
                failed.add(partition)
            elif not self._is_in_progress(partition, target):
                plan[partition] = reassigned(self._context.assignment(partition), target)
        results = await self._reassignment.start_reassignments(plan)
        failed |= {partition for partition, result in results.items() if result.code != NONE}
        if failed:
            await self._reassignment.node.remove_done(
                lambda partition, _target: partition in failed
            )

    async def on_preferred_election(self) -> None:
        """Elect the preferred leaders requested in `/admin/preferred_replica_election`.

        The node is deleted.
        """
        await self._watch(
            PREFERRED_REPLICA_ELECTION, "ReplicaLeaderElection", self.on_preferred_election
        )
        znodes = self._machines.parts.znodes
        try:
            data, _ = await znodes.client.get(PREFERRED_REPLICA_ELECTION)
            partitions = decode_partitions(data, PREFERRED_REPLICA_ELECTION)
        except NoNode:
            return
        except InvalidZnodeValue as error:
            self._machines.parts.reporter.event_failed("ReplicaLeaderElection", error)
            partitions = []
        await RequestedElection(self._machines, partitions, is_unclean=False).handle()
        await znodes.delete_all([PREFERRED_REPLICA_ELECTION])

    def _is_in_progress(self, partition: TopicPartition, target: tuple[int, ...]) -> bool:
        """True if the partition is being reassigned to `target` already."""
        assignment = self._context.assignment(partition)
        return is_reassigning(assignment) and target_replicas(assignment) == target

    async def _watch(
        self, path: str, name: str, work: Callable[[], PromiseCoroutine[None]]
    ) -> None:
        """Queue `work` at the next change of a node; called before the node is read."""
        await self._machines.watches.arm_node(path, lambda _event: self._machines.put(name, work))
