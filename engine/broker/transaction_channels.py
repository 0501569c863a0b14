"""Send transaction markers to leaders and verifications to coordinators.

There is one channel to each broker, opened on first use and again after a failure. When a channel
is closed its requests fail, so that none waits for a broker with another address.

Source: TransactionMarkerChannelManager, AddPartitionsToTxnManager of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from engine.broker.peers import PeerChannel, Peers
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


class _OpenChannel(NamedTuple):
    """A channel to a broker, its registration at that time, and the pending promises."""

    node: BrokerNode
    channel: PeerChannel
    owed: dict[Promise[Message], None]


class TransactionChannels:
    """The channels to all brokers; implements `engine.transactions.ports.MarkerChannels`."""

    def __init__(self, metadata_cache: MetadataCache, peers: Peers) -> None:
        """Create the transaction coordinator's channels to brokers, without any."""
        self._metadata_cache = metadata_cache
        self._peers = peers
        self._channels: dict[int, _OpenChannel] = {}
        self._is_closed = False

    def leader_of(self, partition: TopicPartition) -> int | None:
        """Return the broker id of a partition's leader.

        −1 without a live leader, None for a deleted partition.
        Differs: while `__transaction_state` is unknown too, no partition counts as deleted. In
        Kafka a new controller sends a broker that has just started its leaderships before any topic
        metadata; its coordinator would complete transactions without markers.
        """
        known = self._metadata_cache.partition(partition)
        if known is None:
            is_informed = TRANSACTION_STATE in self._metadata_cache.topics
            return None if is_informed else _NO_LEADER
        return known.leader_id if known.leader_id in self._metadata_cache.brokers else _NO_LEADER

    def write(self, broker_id: int, markers: Sequence[Marker]) -> Promise[list[MarkerCodes]]:
        """Send transaction markers to a leader; promise for each marker its codes by partition.

        The promise fails with an EngineError if the connection fails or is lost.
        """

        def request(_version: int) -> messages.WriteTxnMarkersRequest:
            """Build WriteTxnMarkers with a row for each marker."""
            return messages.WriteTxnMarkersRequest(
                markers=[_marker_row(marker) for marker in markers]
            )

        def codes(response: Message) -> list[MarkerCodes]:
            """Return the codes of a local (values) or remote (message) response."""
            if isinstance(response, list):
                # A broker in this process responds with the codes themselves.
                return response
            assert isinstance(response, messages.WriteTxnMarkersResponse)
            return _codes_by_partition(markers, response)

        call = Call("WriteTxnMarkers", request, local=markers)
        return self.send(broker_id, call).then(codes)

    def send(self, broker_id: int, call: Call) -> Promise[Message]:
        """Send a request to a broker; promise the response.

        The promise fails with an EngineError if the connection fails or is lost.
        """
        open_channel = self._open_channel_to(broker_id)
        if open_channel is None:
            return Promise.failed(
                Unreachable("broker", broker_id, "it is not known, or unreachable")
            )
        response = open_channel.channel.send(call)
        if response.is_kept and response.error is None:
            # A broker in this process has responded already.
            return response
        owed: Promise[Message] = Promise()
        open_channel.owed[owed] = None

        def settle() -> None:
            """Complete the caller's promise; an error other than a response's drops the channel."""
            if owed.is_kept:
                return
            del open_channel.owed[owed]
            error = response.error
            if error is None:
                owed.keep(response.result())
                return
            if not isinstance(error, ApiError | NoCommonVersion):
                self._close_channel(broker_id, open_channel)
            owed.fail(error)

        response.watch(settle)
        return owed

    def close(self) -> None:
        """Close all channels; later requests fail."""
        self._is_closed = True
        do_each(tuple(self._channels.items()), lambda item: self._close_channel(*item))

    def _open_channel_to(self, broker_id: int) -> _OpenChannel | None:
        """Return the channel to a broker; a new one if there is none, or its address has changed.

        None if the broker is not live or cannot be reached.
        """
        node = self._metadata_cache.brokers.get(broker_id)
        if node is None or self._is_closed:
            return None
        open_channel = self._channels.get(broker_id)
        if open_channel is not None and open_channel.node == node:
            return open_channel
        if open_channel is not None:
            self._close_channel(broker_id, open_channel)
        channel = self._peers.channel(node)
        if channel is None:
            return None
        made = self._channels[broker_id] = _OpenChannel(node, channel, {})
        return made

    def _close_channel(self, broker_id: int, open_channel: _OpenChannel) -> None:
        """Close a channel, unless it was closed before; its requests fail with ConnectionLost."""
        if self._channels.get(broker_id) is not open_channel:
            return
        del self._channels[broker_id]
        open_channel.channel.close()
        lost = ConnectionLost("broker", broker_id, "the link to it was given up")
        owed = tuple(open_channel.owed)
        open_channel.owed.clear()
        do_each(owed, lambda promise: promise.fail(lost))


def _marker_row(marker: Marker) -> messages.WriteTxnMarkersRequest.WritableTxnMarker:
    """Return the row of one marker in WriteTxnMarkers."""
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
    """Return the partition numbers of each topic, topics and numbers in the given order."""
    topics: dict[str, list[int]] = {}
    for partition in partitions:
        topics.setdefault(partition.topic, []).append(partition.partition)
    return topics


def _codes_by_partition(
    markers: Sequence[Marker], response: messages.WriteTxnMarkersResponse
) -> list[MarkerCodes]:
    """Return the codes in a response, for each marker by partition, in the order of the markers.

    Two markers of one producer have no partition in common, so that its rows can be merged.
    """
    of_producer: dict[int, MarkerCodes] = {}
    for row in response.markers:
        codes = of_producer.setdefault(row.producer_id, {})
        for topic in row.topics:
            for partition in topic.partitions:
                key = TopicPartition(topic.name, partition.partition_index)
                codes[key] = partition.error_code
    return [of_producer.get(marker.producer_id, {}) for marker in markers]
