"""Requests about transactions between brokers: markers to leaders, verifications to coordinators.

One link to each broker, made when it is first needed and again after it was lost. Requests on
a link that is given up fail then: none waits for a broker that has moved.

Source: TransactionMarkerChannelManager, AddPartitionsToTxnManager of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from engine.broker.peers import BrokerLink, Peers
from engine.client.connection import Call
from engine.client.errors import ConnectionLost, NoCommonVersion, Unreachable
from engine.errors import ApiError
from engine.host.each import do_each
from engine.host.promise import Promise
from engine.model import TopicPartition
from engine.naming import TRANSACTION_STATE
from engine.replication.metadata_cache import BrokerNode, MetadataCache
from engine.transactions.ports import Marker, MarkerCodes
from engine.wire import messages
from engine.wire.structs import Message

_NO_LEADER = -1


class _Linked(NamedTuple):
    """A link to a broker as it was registered, and the responses that come by it."""

    node: BrokerNode
    link: BrokerLink
    owed: dict[Promise[Message], None]


class TransactionChannels:
    """Links to all brokers; see `engine.transactions.ports.MarkerLinks`."""

    def __init__(self, metadata_cache: MetadataCache, peers: Peers) -> None:
        self._metadata_cache = metadata_cache
        self._peers = peers
        self._links: dict[int, _Linked] = {}
        self._is_closed = False

    def leader_of(self, partition: TopicPartition) -> int | None:
        """Return the leader, −1 if no broker leads now; None if the partition is deleted.

        Differs: while the coordinators' topic is not known either, nothing counts as deleted.
        A broker of Kafka that becomes the controller sends a broker that has just started its
        leaderships before any topic; a coordinator would complete transactions without markers.
        """
        known = self._metadata_cache.partition(partition)
        if known is None:
            is_informed = TRANSACTION_STATE in self._metadata_cache.topics
            return None if is_informed else _NO_LEADER
        return known.leader_id if known.leader_id in self._metadata_cache.brokers else _NO_LEADER

    def write(self, broker_id: int, markers: Sequence[Marker]) -> Promise[list[MarkerCodes]]:
        """Send markers to a leader; fails with an EngineError if it was not reached or lost."""
        request = messages.WriteTxnMarkersRequest(markers=[_row(marker) for marker in markers])

        def codes(response: Message) -> list[MarkerCodes]:
            assert isinstance(response, messages.WriteTxnMarkersResponse)
            return _codes(markers, response)

        return self.send(broker_id, Call("WriteTxnMarkers", request)).then(codes)

    def send(self, broker_id: int, call: Call) -> Promise[Message]:
        """Send a request to a broker; fails with an EngineError if it was not reached or lost."""
        linked = self._linked(broker_id)
        if linked is None:
            return Promise.failed(
                Unreachable("broker", broker_id, "it is not known, or unreachable")
            )
        response, owed = linked.link.send(call), Promise[Message]()
        linked.owed[owed] = None

        def settled() -> None:
            """Complete the caller's promise; an error other than a response's drops the link."""
            if owed.is_kept:
                return
            del linked.owed[owed]
            error = response.error
            if error is None:
                owed.keep(response.result())
                return
            if not isinstance(error, ApiError | NoCommonVersion):
                self._close_link(broker_id, linked)
            owed.fail(error)

        response.watch(settled)
        return owed

    def close(self) -> None:
        """End all links, and make none any more."""
        self._is_closed = True
        do_each(tuple(self._links.items()), lambda item: self._close_link(*item))

    def _linked(self, broker_id: int) -> _Linked | None:
        """Return the link to a broker, a new one if its address changed; None if unreachable."""
        node = self._metadata_cache.brokers.get(broker_id)
        if node is None or self._is_closed:
            return None
        linked = self._links.get(broker_id)
        if linked is not None and linked.node == node:
            return linked
        if linked is not None:
            self._close_link(broker_id, linked)
        link = self._peers.link(node)
        if link is None:
            return None
        made = self._links[broker_id] = _Linked(node, link, {})
        return made

    def _close_link(self, broker_id: int, linked: _Linked) -> None:
        """Close a link that is still the broker's; all its calls fail with ConnectionLost."""
        if self._links.get(broker_id) is not linked:
            return
        del self._links[broker_id]
        linked.link.close()
        lost = ConnectionLost("broker", broker_id, "the link to it was given up")
        owed = tuple(linked.owed)
        linked.owed.clear()
        do_each(owed, lambda promise: promise.fail(lost))


def _row(marker: Marker) -> messages.WriteTxnMarkersRequest.WritableTxnMarker:
    """Return the request's row of one marker."""
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
