"""DescribeCluster: the cluster's id, its controller, and the brokers that are up.

| endpoint type asked for | version 0 | version 1 |
|---|---|---|
| 1, brokers | the answer | the answer |
| 2, controllers | – | MISMATCHED_ENDPOINT_TYPE |
| others | – | UNSUPPORTED_ENDPOINT_TYPE |

A controller without the asker's listener is told as −1, for the asker could not find it.

Source: AuthHelper.computeDescribeClusterResponse of 3.9.1.
"""

from __future__ import annotations

from typing import Any

from engine.api.admission import CLUSTER_NAME, AclOperation, AclResource
from engine.api.exchange import Exchange
from engine.api.metadata import ALL_CLUSTER_OPERATIONS
from engine.kafka_errors import MISMATCHED_ENDPOINT_TYPE, UNSUPPORTED_ENDPOINT_TYPE
from engine.replication.metadata_cache import MetadataCache
from engine.wire.structs import message_class

_BROKERS = 1
_CONTROLLERS = 2
_NO_CONTROLLER = -1


class DescribeCluster:
    """Answers from the metadata cache."""

    def __init__(self, cache: MetadataCache) -> None:
        self._cache = cache
        self._response = message_class("DescribeClusterResponse")

    def handle(self, request: Any, exchange: Exchange) -> Any:
        """Return the cluster as one listener shows it."""
        if request.endpoint_type == _CONTROLLERS:
            return self._response(
                error_code=MISMATCHED_ENDPOINT_TYPE,
                error_message="this is a broker, and controllers were asked for",
            )
        if request.endpoint_type != _BROKERS:
            return self._response(
                error_code=UNSUPPORTED_ENDPOINT_TYPE,
                error_message=f"no endpoint has the type {request.endpoint_type}",
            )
        brokers = self._brokers(exchange.session.listener)
        controller_id = self._cache.controller_id
        is_told = any(broker.broker_id == controller_id for broker in brokers)
        reply = self._response(
            cluster_id=self._cache.cluster_id,
            controller_id=controller_id if is_told else _NO_CONTROLLER,
            brokers=brokers,
        )
        if request.include_cluster_authorized_operations:
            session = exchange.session
            reply.cluster_authorized_operations = (
                session.operations_on(AclResource.CLUSTER, CLUSTER_NAME, ALL_CLUSTER_OPERATIONS)
                if session.may_on_cluster(AclOperation.DESCRIBE)
                else 0
            )
        return reply

    def _brokers(self, listener: str) -> list[Any]:
        entry = self._response.DescribeClusterBroker
        found = []
        for broker in self._cache.brokers.values():
            endpoint = broker.endpoint(listener)
            if endpoint is not None:
                found.append(
                    entry(
                        broker_id=broker.broker_id,
                        host=endpoint.host,
                        port=endpoint.port,
                        rack=broker.rack,
                    )
                )
        return found
