"""AlterPartitionReassignments: start, replace or cancel reassignments of partitions.

The checks of a request are in `reassignment_rules`, the phases in `reassignment`. If a request has
a partition twice, the last row counts.

Source: RSN-6, RSN-7, REPL-7, KIP-455; KafkaApis.handleAlterPartitionReassignmentsRequest,
KafkaController.processApiPartitionReassignment.
"""

from __future__ import annotations

from typing import TypeAlias

from engine.controller.machines import Machines
from engine.controller.reassignment import Reassignment
from engine.controller.reassignment_rules import (
    NOTHING_TO_CANCEL,
    ReassignmentResult,
    check_replicas,
    plan_reassignment,
)
from engine.hash_order import partitions_in_hash_order
from engine.host.turns import LoopTurns, Share
from engine.kafka_errors import NOT_CONTROLLER, UNKNOWN_SERVER_ERROR
from engine.model import TopicPartition
from engine.wire import messages
from engine.znode.values import PartitionAssignment

_NOT_THE_CONTROLLER = "This is not the correct controller for this cluster."

_Row: TypeAlias = "messages.AlterPartitionReassignmentsResponse.ReassignablePartitionResponse"


class RequestedReassignment:
    """Handles AlterPartitionReassignments requests, each as one event of the controller."""

    def __init__(self, machines: Machines, reassignment: Reassignment, turns: LoopTurns) -> None:
        self._context = machines.context
        self._reassignment = reassignment
        self._turns = turns

    def refusal(self) -> messages.AlterPartitionReassignmentsResponse:
        """Return the response of a broker that is not the controller."""
        return messages.AlterPartitionReassignmentsResponse(
            error_code=NOT_CONTROLLER, error_message=_NOT_THE_CONTROLLER
        )

    def failure(self) -> messages.AlterPartitionReassignmentsResponse:
        """Return the response after a failure of the metadata store."""
        return messages.AlterPartitionReassignmentsResponse(
            error_code=UNKNOWN_SERVER_ERROR, error_message=None
        )

    async def handle(
        self, request: messages.AlterPartitionReassignmentsRequest
    ) -> messages.AlterPartitionReassignmentsResponse:
        """Start or cancel the requested reassignments; return the result of each partition.

        The replicas' catching up is not waited for. The work takes several turns of the event loop
        within one event: no other event runs in between.
        """
        share = self._turns.begin()
        results: dict[TopicPartition, ReassignmentResult] = {}
        plan: dict[TopicPartition, PartitionAssignment] = {}
        for partition, target in _parse_targets(request).items():
            if share.is_over():
                await share.next()
            decision = self._plan_partition(partition, target)
            if isinstance(decision, ReassignmentResult):
                results[partition] = decision
            else:
                plan[partition] = decision
        # This request replaces one in the znode for the same partition.
        await self._reassignment.node.remove_done(lambda partition, _target: partition in plan)
        results.update(await self._reassignment.start_reassignments(plan))
        return await _build_response(results, share)

    def _plan_partition(
        self, partition: TopicPartition, target: tuple[int, ...] | None
    ) -> PartitionAssignment | ReassignmentResult:
        """Return the assignment that starts a reassignment, or its refusal.

        `target` None cancels.
        """
        assignment = self._context.assignment(partition)
        if target is not None:
            live = [id_ for id_ in self._context.live_ids() if self._context.is_live(id_)]
            refusal = check_replicas(assignment, target, live)
            if refusal is not None:
                return refusal
        return plan_reassignment(assignment, target) or NOTHING_TO_CANCEL


def _parse_targets(
    request: messages.AlterPartitionReassignmentsRequest,
) -> dict[TopicPartition, tuple[int, ...] | None]:
    """Return the target replicas of each requested partition; None means a cancellation."""
    return {
        TopicPartition(topic.name, row.partition_index): (
            None if row.replicas is None else tuple(row.replicas)
        )
        for topic in request.topics
        for row in topic.partitions
    }


async def _build_response(
    results: dict[TopicPartition, ReassignmentResult], share: Share
) -> messages.AlterPartitionReassignmentsResponse:
    """Return the response with the code and message of each partition, in Kafka's order."""
    response = messages.AlterPartitionReassignmentsResponse
    by_topic: dict[str, list[_Row]] = {topic: [] for topic, _ in results}
    # Rows of a topic are in the order of Kafka's hash map.
    for partition in partitions_in_hash_order(results):
        (topic, index), (code, message) = partition, results[partition]
        if share.is_over():
            await share.next()
        row = response.ReassignablePartitionResponse(
            partition_index=index, error_code=code, error_message=message
        )
        by_topic[topic].append(row)
    return response(
        responses=[
            response.ReassignableTopicResponse(name=topic, partitions=rows)
            for topic, rows in by_topic.items()
        ]
    )
