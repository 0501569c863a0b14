"""Requests that only the controller serves: the handler passes them on and does not wait.

ControlledShutdown (7), AlterPartitionReassignments (45), ListPartitionReassignments (46),
AlterPartition (56), AllocateProducerIds (67).

The controller answers after it has processed the request's event; a controller that is not active
responds with NOT_CONTROLLER, and the client finds the active one.

Source: KafkaApis.handleControlledShutdownRequest, handleAlterPartitionRequest,
handleAllocateProducerIdsRequest, handleAlterPartitionReassignmentsRequest,
handleListPartitionReassignmentsRequest; KIP-455, KIP-497, KIP-730.
"""

from __future__ import annotations

from engine.api.exchange import Exchange
from engine.controller.controller import Controller
from engine.host.promise import Promise
from engine.wire import messages


class ToController:
    """Passes requests to the controller of this broker."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def controlled_shutdown(
        self, request: messages.ControlledShutdownRequest, _exchange: Exchange
    ) -> Promise[messages.ControlledShutdownResponse]:
        """Move leaders away from a broker that stops.

        Promises the partitions that it still leads.
        """
        return self._controller.controlled_shutdown(request)

    def alter_reassignments(
        self, request: messages.AlterPartitionReassignmentsRequest, _exchange: Exchange
    ) -> Promise[messages.AlterPartitionReassignmentsResponse]:
        """Begin or cancel reassignments at the controller; promise the result of each partition."""
        return self._controller.alter_reassignments(request)

    def list_reassignments(
        self, request: messages.ListPartitionReassignmentsRequest, _exchange: Exchange
    ) -> Promise[messages.ListPartitionReassignmentsResponse]:
        """Promise the partitions that are being reassigned, from the controller."""
        return self._controller.list_reassignments(request)

    def alter_partition(
        self, request: messages.AlterPartitionRequest, exchange: Exchange
    ) -> Promise[messages.AlterPartitionResponse]:
        """Change ISRs at the controller, as their leaders request.

        Promises each new ISR or error.
        """
        return self._controller.alter_partition(request, exchange.api_version)

    def allocate_producer_ids(
        self, request: messages.AllocateProducerIdsRequest, _exchange: Exchange
    ) -> Promise[messages.AllocateProducerIdsResponse]:
        """Promise a block of producer ids, allocated by the controller."""
        return self._controller.allocate_producer_ids(request)
