"""DescribeCluster: the cluster's id, its controller, and the brokers that are up.

| requested endpoint type | version 0 | version 1 |
|---|---|---|
| 1, brokers | the response | the response |
| 2, controllers | – | MISMATCHED_ENDPOINT_TYPE |
| others | – | UNSUPPORTED_ENDPOINT_TYPE |

A controller without the client's listener is −1, for the client could not reach it.

Source: AuthHelper.computeDescribeClusterResponse of 3.9.1.
"""

from __future__ import annotations

from engine.api.admission import CLUSTER_NAME, AclOperation, AclResource
from engine.api.exchange import Exchange
from engine.api.metadata import ALL_CLUSTER_OPERATIONS
from engine.kafka_errors import MISMATCHED_ENDPOINT_TYPE, UNSUPPORTED_ENDPOINT_TYPE
from engine.replication.metadata_cache import MetadataCache
from engine.wire import messages

_BROKERS = 1
_CONTROLLERS = 2
_NO_CONTROLLER = -1


class DescribeCluster:
    """Answers DescribeCluster from the metadata cache."""

    def __init__(self, metadata_cache: MetadataCache) -> None:
        self._metadata_cache = metadata_cache

    def handle(
        self, request: messages.DescribeClusterRequest, exchange: Exchange
    ) -> messages.DescribeClusterResponse:
        """Return the brokers that have an endpoint of the client's listener, and the controller.

        The controller's id is −1 if it is not among these brokers.
        """
        if request.endpoint_type == _CONTROLLERS:
            return messages.DescribeClusterResponse(
                error_code=MISMATCHED_ENDPOINT_TYPE,
                error_message="The request was sent to an endpoint of type BROKER, but we wanted "
                "an endpoint of type CONTROLLER",
            )
        if request.endpoint_type != _BROKERS:
            return messages.DescribeClusterResponse(
                error_code=UNSUPPORTED_ENDPOINT_TYPE,
                error_message=f"Unsupported endpoint type {request.endpoint_type}",
            )
        brokers = self._broker_rows(exchange.session.listener)
        controller_id = self._metadata_cache.controller_id
        is_shown = any(broker.broker_id == controller_id for broker in brokers)
        response = messages.DescribeClusterResponse(
            cluster_id=self._metadata_cache.cluster_id,
            controller_id=controller_id
            if is_shown and controller_id is not None
            else _NO_CONTROLLER,
            brokers=brokers,
        )
        if request.include_cluster_authorized_operations:
            session = exchange.session
            response.cluster_authorized_operations = (
                session.operations_on(AclResource.CLUSTER, CLUSTER_NAME, ALL_CLUSTER_OPERATIONS)
                if session.may_on_cluster(AclOperation.DESCRIBE)
                else 0
            )
        return response

    def _broker_rows(
        self, listener: str
    ) -> list[messages.DescribeClusterResponse.DescribeClusterBroker]:
        """Return the live brokers that have an endpoint of the listener."""
        node = messages.DescribeClusterResponse.DescribeClusterBroker
        nodes = []
        for broker in self._metadata_cache.brokers_to_notify():
            endpoint = broker.endpoint(listener)
            if endpoint is not None:
                nodes.append(
                    node(
                        broker_id=broker.broker_id,
                        host=endpoint.host,
                        port=endpoint.port,
                        rack=broker.rack,
                    )
                )
        return nodes
