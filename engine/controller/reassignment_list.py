"""ListPartitionReassignments: the partitions that are being reassigned.

Source: REPL-7, KIP-455; KafkaController.processListPartitionReassignments.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from engine.controller.machines import Machines
from engine.kafka_errors import NOT_CONTROLLER, UNKNOWN_SERVER_ERROR
from engine.model import TopicPartition
from engine.wire import messages

_NOT_THE_CONTROLLER = "This is not the correct controller for this cluster."


_Row: TypeAlias = "messages.ListPartitionReassignmentsResponse.OngoingPartitionReassignment"


class ReassignmentList:
    """Handles ListPartitionReassignments requests."""

    def __init__(self, machines: Machines) -> None:
        self._context = machines.context

    def refusal(self) -> messages.ListPartitionReassignmentsResponse:
        """Return the response of a broker that is not the controller."""
        return messages.ListPartitionReassignmentsResponse(
            error_code=NOT_CONTROLLER, error_message=_NOT_THE_CONTROLLER
        )

    def failure(self) -> messages.ListPartitionReassignmentsResponse:
        """Return the response after a failure of the metadata store."""
        return messages.ListPartitionReassignmentsResponse(
            error_code=UNKNOWN_SERVER_ERROR, error_message=None
        )

    async def handle(
        self, request: messages.ListPartitionReassignmentsRequest
    ) -> messages.ListPartitionReassignmentsResponse:
        """Return the response: those of the requested partitions that are being reassigned.

        A request without a topic list asks for all.
        """
        topics: dict[str, list[_Row]] = {}
        for partition in self._requested_partitions(request):
            row = self._partition_row(partition)
            if row is not None:
                topics.setdefault(partition.topic, []).append(row)
        topic = messages.ListPartitionReassignmentsResponse.OngoingTopicReassignment
        return messages.ListPartitionReassignmentsResponse(
            topics=[topic(name=name, partitions=rows) for name, rows in topics.items()]
        )

    def _requested_partitions(
        self, request: messages.ListPartitionReassignmentsRequest
    ) -> Iterable[TopicPartition]:
        """Return the requested partitions without duplicates; all reassigning ones for null."""
        if request.topics is None:
            return sorted(self._context.reassigning)
        return dict.fromkeys(
            TopicPartition(topic.name, index)
            for topic in request.topics
            for index in topic.partition_indexes
        )

    def _partition_row(self, partition: TopicPartition) -> _Row | None:
        """Return the response row of a partition, None if it is not being reassigned."""
        assignment = self._context.assignment(partition)
        if not assignment.adding_replicas and not assignment.removing_replicas:
            return None
        return messages.ListPartitionReassignmentsResponse.OngoingPartitionReassignment(
            partition_index=partition.partition,
            replicas=list(assignment.replicas),
            adding_replicas=list(assignment.adding_replicas),
            removing_replicas=list(assignment.removing_replicas),
        )
