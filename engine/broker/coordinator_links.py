"""Requests about transactions between brokers: markers to leaders, questions to coordinators.

One link to each broker, made when it is first needed and again after it was lost.

Source: TransactionMarkerChannelManager, AddPartitionsToTxnManager of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.broker.peers import BrokerLink, Peers
from engine.client.connection import Call
from engine.client.errors import Unreachable
from engine.host.promise import Promise
from engine.model import TopicPartition
from engine.replication.metadata_cache import BrokerNode, MetadataCache
from engine.transactions.ports import Marker, MarkerCodes
from engine.wire import messages
from engine.wire.structs import Message

_NO_LEADER = -1


class CoordinatorLinks:
    """Links to all brokers; see `engine.transactions.ports.MarkerLinks`."""

    def __init__(self, metadata_cache: MetadataCache, peers: Peers) -> None:
        self._metadata_cache = metadata_cache
        self._peers = peers
        self._links: dict[int, tuple[BrokerNode, BrokerLink]] = {}

    def leader_of(self, partition: TopicPartition) -> int | None:
        """Return the broker that leads, −1 if no broker does now; None if the partition is gone."""
        known = self._metadata_cache.partition(partition)
        if known is None:
            return None
        return known.leader_id if known.leader_id in self._metadata_cache.brokers else _NO_LEADER

    def write(self, broker_id: int, markers: Sequence[Marker]) -> Promise[list[MarkerCodes]]:
        """Have a leader append markers; fails with an EngineError if it was not reached or lost."""
        request = messages.WriteTxnMarkersRequest(markers=[_row(marker) for marker in markers])

        def codes(response: Message) -> list[MarkerCodes]:
            assert isinstance(response, messages.WriteTxnMarkersResponse)
            return _codes(markers, response)

        return self.ask(broker_id, Call("WriteTxnMarkers", request)).then(codes)

    def ask(self, broker_id: int, call: Call) -> Promise[Message]:
        """Send a request to a broker; fails with an EngineError if it was not reached or lost."""
        link = self._link(broker_id)
        if link is None:
            return Promise.failed(
                Unreachable("broker", broker_id, "it is not known, or unreachable")
            )
        response = link.ask(call)

        def settled() -> None:
            if response.error is not None:
                self._forget(broker_id, link)

        response.watch(settled)
        return response

    def close(self) -> None:
        """End all links."""
        links, self._links = self._links, {}
        for _, link in links.values():
            link.close()

    def _link(self, broker_id: int) -> BrokerLink | None:
        node = self._metadata_cache.brokers.get(broker_id)
        if node is None:
            return None
        made_for, link = self._links.get(broker_id, (None, None))
        if link is not None and made_for == node:
            return link
        if link is not None:
            self._forget(broker_id, link)
        made = self._peers.link(node)
        if made is not None:
            self._links[broker_id] = (node, made)
        return made

    def _forget(self, broker_id: int, link: BrokerLink) -> None:
        known = self._links.get(broker_id)
        if known is not None and known[1] is link:
            del self._links[broker_id]
            link.close()


def _row(marker: Marker) -> messages.WriteTxnMarkersRequest.WritableTxnMarker:
    request = messages.WriteTxnMarkersRequest
    return request.WritableTxnMarker(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transaction_result=marker.is_commit,
        coordinator_epoch=marker.coordinator_epoch,
        topics=[
            request.WritableTxnMarkerTopic(name=name, partition_indexes=indexes)
            for name, indexes in by_topic(marker.partitions).items()
        ],
    )


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Return the indexes of partitions by their topics, in order."""
    topics: dict[str, list[int]] = {}
    for partition in partitions:
        topics.setdefault(partition.topic, []).append(partition.partition)
    return topics


def _codes(
    markers: Sequence[Marker], response: messages.WriteTxnMarkersResponse
) -> list[MarkerCodes]:
    """Return the codes of each marker; two of one producer have no partition in common."""
    of_producer: dict[int, MarkerCodes] = {}
    for row in response.markers:
        codes = of_producer.setdefault(row.producer_id, {})
        for topic in row.topics:
            for partition in topic.partitions:
                key = TopicPartition(topic.name, partition.partition_index)
                codes[key] = partition.error_code
    return [of_producer.get(marker.producer_id, {}) for marker in markers]
