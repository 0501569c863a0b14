"""ListPartitionReassignments: which partitions are on their way to other replicas.

Source: REPL-7, KIP-455; KafkaController.processListPartitionReassignments.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from engine.controller.machines import Machines
from engine.kafka_errors import NOT_CONTROLLER, UNKNOWN_SERVER_ERROR
from engine.model import TopicPartition
from engine.wire.structs import message_class

_NOT_THE_CONTROLLER = "This is not the correct controller for this cluster."


class ReassignmentList:
    """Tells what the controller knows of reassignments."""

    def __init__(self, machines: Machines) -> None:
        self._context = machines.context
        self._response = message_class("ListPartitionReassignmentsResponse")

    def refusal(self) -> Any:
        """Return the answer of one that is not the controller."""
        return self._response(error_code=NOT_CONTROLLER, error_message=_NOT_THE_CONTROLLER)

    def failure(self) -> Any:
        """Return the answer when the store failed."""
        return self._response(error_code=UNKNOWN_SERVER_ERROR, error_message=None)

    async def handle(self, request: Any) -> Any:
        """Return those of a request's partitions that are being moved; null stands for all."""
        asked = self._context.partitions() if request.topics is None else _partitions(request)
        found: dict[str, list[Any]] = {}
        for partition in asked:
            row = self._row(partition)
            if row is not None:
                found.setdefault(partition.topic, []).append(row)
        topic = self._response.OngoingTopicReassignment
        return self._response(
            topics=[topic(name=name, partitions=rows) for name, rows in found.items()]
        )

    def _row(self, partition: TopicPartition) -> Any:
        assignment = self._context.assignment(partition)
        if not assignment.adding_replicas and not assignment.removing_replicas:
            return None
        return self._response.OngoingPartitionReassignment(
            partition_index=partition.partition,
            replicas=list(assignment.replicas),
            adding_replicas=list(assignment.adding_replicas),
            removing_replicas=list(assignment.removing_replicas),
        )


def _partitions(request: Any) -> Iterable[TopicPartition]:
    return dict.fromkeys(
        TopicPartition(topic.name, index)
        for topic in request.topics
        for index in topic.partition_indexes
    )
