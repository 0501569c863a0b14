"""ConsumerGroupHeartbeat (68), ConsumerGroupDescribe (69): UNSUPPORTED_VERSION.

A broker of a cluster with ZooKeeper advertises both and serves neither, for any value of
`group.coordinator.rebalance.protocols`: clients continue with the classic protocol.

Source: KafkaApis.handleConsumerGroupHeartbeat, handleConsumerGroupDescribe of 3.9.1; KIP-848.
"""

from __future__ import annotations

from engine.api.exchange import Exchange
from engine.kafka_errors import UNSUPPORTED_VERSION
from engine.wire import messages


class ConsumerProtocol:
    """Refuses ConsumerGroupHeartbeat and ConsumerGroupDescribe."""

    def heartbeat(
        self, _request: messages.ConsumerGroupHeartbeatRequest, _exchange: Exchange
    ) -> messages.ConsumerGroupHeartbeatResponse:
        """Return UNSUPPORTED_VERSION: the engine's groups have only the classic protocol."""
        return messages.ConsumerGroupHeartbeatResponse(error_code=UNSUPPORTED_VERSION)

    def describe(
        self, request: messages.ConsumerGroupDescribeRequest, _exchange: Exchange
    ) -> messages.ConsumerGroupDescribeResponse:
        """Return UNSUPPORTED_VERSION for each group.

        The engine's groups have the classic protocol.
        """
        group = messages.ConsumerGroupDescribeResponse.DescribedGroup
        return messages.ConsumerGroupDescribeResponse(
            groups=[
                group(group_id=group_id, error_code=UNSUPPORTED_VERSION)
                for group_id in request.group_ids
            ]
        )
