"""Send a fetcher's requests to its leader.

| request | API |
|---|---|
| records, or the diverging epoch | Fetch, in a session (`FetchSessionHandler`) |
| log end offset, log start offset | ListOffsets |
| end offset of the epoch before a gap | OffsetForLeaderEpoch |

The channel calls a leader in the same process, and sends frames to a remote leader.

Source: Kafka's LeaderEndPoint, LocalLeaderEndPoint and RemoteLeaderEndPoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, Protocol

from engine.client.connection import Call
from engine.host.ports import Clock, Timers
from engine.host.promise import Promise
from engine.log.log_reader import EARLIEST, LATEST
from engine.model import TopicPartition
from engine.replication.follower_encoders import Give
from engine.replication.following.fast_fetch_cycle import FastFetchCycle
from engine.replication.following.fetch_session_handler import FetchSessionHandler
from engine.replication.following.followed_partitions import (
    EpochAnswer,
    EpochRequest,
    FollowedPartitions,
)
from engine.replication.metadata_cache import BrokerNode, MetadataCache
from engine.replication.partition_types import FetchSpec
from engine.wire import messages
from engine.wire.structs import Message

#: First version with a single offset for each partition and the leader epoch in the request.
_LOWEST_LIST_OFFSETS: Final = 4
#: First version with the leader epoch in the request and the epoch of the end in the response.
_LOWEST_EPOCH_ENDS: Final = 2


class LeaderChannel(Protocol):
    """The channel to one leader; see `engine.broker.peers`."""

    @property
    def is_same(self) -> bool:
        """True if the leader is in this process, and was not restarted since the last request."""
        ...

    def send(self, call: Call) -> Promise[Message]:
        """Send a request; promise the response. Requests are served in the order of the calls."""
        ...

    def close(self) -> None:
        """Close the channel; requests without a response fail."""
        ...


class FetcherPorts(NamedTuple):
    """The parts of a broker that its fetchers use.

    `epoch` returns the broker epoch. `channel` opens a channel to a leader for a client id; it
    returns None if the leader cannot be reached.
    """

    broker_id: int
    epoch: Callable[[], int]
    metadata_cache: MetadataCache
    channel: Callable[[BrokerNode, str], LeaderChannel | None]
    timers: Timers
    clock: Clock


class LeaderEndPoint:
    """The requests of one fetcher to its leader; they fail if the connection fails or is lost."""

    def __init__(
        self, leader_id: int, followed: FollowedPartitions, ports: FetcherPorts, number: int
    ) -> None:
        """Create a fetcher's access to its leader, without a channel yet.

        `number` distinguishes the fetchers of one leader (num.replica.fetchers).
        """
        self._leader_id = leader_id
        self._followed = followed
        self._ports = ports
        self._client_id = f"broker-{ports.broker_id}-fetcher-{number}"
        #: The fetch session with the leader; reset when the channel is closed.
        self.session = FetchSessionHandler(ports.broker_id, ports.epoch, followed.config)
        #: Fast path of a fetch cycle in which one partition gets records.
        self._fast = FastFetchCycle(self._client_id, followed, self.session, ports.clock)
        #: Channel to the leader; None before the first request, and after a failure.
        self._channel: LeaderChannel | None = None

    @property
    def is_same(self) -> bool:
        """True if the leader is in this process, and was not restarted since the last request."""
        return self._channel is not None and self._channel.is_same

    def ensure_connected(self) -> bool:
        """Open a channel to the leader unless it is open; return True if it is open now.

        If it cannot be opened, the fetch session is reset.
        """
        if self._channel is None:
            leader = self._ports.metadata_cache.brokers.get(self._leader_id)
            self._channel = None if leader is None else self._ports.channel(leader, self._client_id)
        if self._channel is None:
            self.session.reset()
        return self._channel is not None

    def disconnect(self) -> None:
        """Close the channel and reset the fetch session; the next request opens a new channel."""
        channel, self._channel = self._channel, None
        self.session.reset()
        if channel is not None:
            channel.close()

    def fetch(self, specs: Mapping[TopicPartition, FetchSpec], give: Give) -> Promise[Message]:
        """Fetch the partitions that `FollowedPartitions.requested` has just returned.

        `give` receives the records of one partition from a local leader while the fetch is parked.
        """
        self._fast.begin()
        topic_ids = self._topic_ids(specs)
        call = self.session.build_call(specs, self._followed.moved, topic_ids, give, self._fast)
        return self._send(call)

    def _topic_ids(
        self, specs: Mapping[TopicPartition, FetchSpec]
    ) -> Mapping[TopicPartition, bytes]:
        """Return the topic ids by which to request partitions.

        Those without a known id are left out. The id in the replica's own log (partition.metadata)
        takes precedence: the metadata cache may have a deleted or a recreated topic of the same
        name. The cache is used only for logs without an id.
        """
        own = self._followed.topic_ids(specs)
        if len(own) == len(specs):
            return own
        known = self._ports.metadata_cache.topic_ids
        others = {key: known[key.topic] for key in specs if key.topic in known}
        return others | own

    def log_ends(
        self, requested: Mapping[TopicPartition, int]
    ) -> Promise[messages.ListOffsetsResponse]:
        """Request the leader's log end offsets of partitions, given with their leader epochs."""
        return self._send(_build_list_offsets(self._ports.broker_id, requested, LATEST))

    def log_starts(
        self, requested: Mapping[TopicPartition, int]
    ) -> Promise[messages.ListOffsetsResponse]:
        """Request the leader's log start offsets of partitions, given with their leader epochs."""
        return self._send(_build_list_offsets(self._ports.broker_id, requested, EARLIEST))

    def epoch_ends(
        self, requested: Mapping[TopicPartition, EpochRequest]
    ) -> Promise[messages.OffsetForLeaderEpochResponse]:
        """Request from the leader where the epochs before gaps end."""
        return self._send(_build_epoch_request(self._ports.broker_id, requested))

    def _send(self, call: Call) -> Promise[Message]:
        """Send a call over the open channel."""
        assert self._channel is not None
        return self._channel.send(call)


def _build_list_offsets(
    replica_id: int, requested: Mapping[TopicPartition, int], timestamp: int
) -> Call:
    """Return a ListOffsets request for one timestamp in all partitions."""
    request = messages.ListOffsetsRequest
    topics: dict[str, messages.ListOffsetsRequest.ListOffsetsTopic] = {}
    for (name, index), leader_epoch in requested.items():
        topic = topics.setdefault(name, request.ListOffsetsTopic(name=name))
        topic.partitions.append(
            request.ListOffsetsPartition(
                partition_index=index, current_leader_epoch=leader_epoch, timestamp=timestamp
            )
        )
    message = request(replica_id=replica_id, topics=list(topics.values()))
    return Call("ListOffsets", message, _LOWEST_LIST_OFFSETS)


def offsets_of(response: messages.ListOffsetsResponse) -> Iterable[tuple[TopicPartition, int, int]]:
    """Yield each partition of a ListOffsets response with its error code and its offset."""
    for topic in response.topics:
        for row in topic.partitions:
            yield TopicPartition(topic.name, row.partition_index), row.error_code, row.offset


def _build_epoch_request(replica_id: int, requested: Mapping[TopicPartition, EpochRequest]) -> Call:
    """Return an OffsetForLeaderEpoch request for the partitions whose epochs have a gap.

    A gap is an epoch of the follower's log whose first batches were compacted away. It starts where
    the leader's epoch before it ends.
    """
    request = messages.OffsetForLeaderEpochRequest
    topics: dict[str, messages.OffsetForLeaderEpochRequest.OffsetForLeaderTopic] = {}
    for (name, index), (leader_epoch, gap) in requested.items():
        topic = topics.setdefault(name, request.OffsetForLeaderTopic(topic=name))
        topic.partitions.append(
            request.OffsetForLeaderPartition(
                partition=index, current_leader_epoch=leader_epoch, leader_epoch=gap.epoch_before
            )
        )
    message = request(replica_id=replica_id, topics=list(topics.values()))
    return Call("OffsetForLeaderEpoch", message, _LOWEST_EPOCH_ENDS)


def parse_epoch_ends(
    response: messages.OffsetForLeaderEpochResponse,
) -> dict[TopicPartition, EpochAnswer]:
    """Return epoch and end offset, or the error code, of each partition in a response."""
    return {
        TopicPartition(topic.topic, row.partition): EpochAnswer(
            row.error_code, row.leader_epoch, row.end_offset
        )
        for topic in response.topics
        for row in topic.partitions
    }
