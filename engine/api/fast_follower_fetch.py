"""Fetches of remote followers, each session with one parked fetch on the leader.

```
 request, of any form ─────── Fetch.answer ─ nothing to read ─> begin ─ parked ─┬─> whole response
                                                                  ^             │
 frame: one partition has moved ─ answer ─────────────────────────┘             └─> records of one
   └ anything else: nothing has been done, and the dispatch table's row serves it
```

A follower that keeps up fetches one partition from a higher offset, again and again. To read all
partitions that it follows for each record costs more than all the rest; the parked fetch reads the
partition that has changed. Its deadline stays that of the first request: then a whole response is
made, which finds changes that only a read of all partitions shows. A partition whose offsets are
those of the last response is not read even then.

Source: FET-2, FET-7, PUR-5, PUR-7; D8, D21.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from engine.api.admission import Session
from engine.api.exchange import EncodedResponse, Exchange
from engine.api.fast_fetch import region_of
from engine.api.fetch_session import (
    FetchContext,
    FetchSession,
    FetchSessionCache,
    SessionPartition,
)
from engine.host.ports import Clock, SendPart
from engine.host.promise import Promise
from engine.limits import JOINED_FETCH_BYTES_MAX
from engine.log.log_types import FetchSlice
from engine.model import TopicPartition, new_tuple
from engine.replication.delayed_fetch import FetchResults, release_results
from engine.replication.follower_encoders import RemoteEncoder
from engine.replication.metadata_cache import MetadataCache
from engine.replication.parked_fetch import LeaderSide, ParkedFetch
from engine.replication.partition import Partition
from engine.replication.partition_types import FetchParams, FetchSpec
from engine.wire.fast_fetch_bytes import TAGS_AFTER_RECORDS
from engine.wire.fast_replica_bytes import (
    FETCH_KEY,
    LAST_VERSION,
    RESPONSE_HEADER_BYTES,
    ReplicaFetch,
    ReplicaLimits,
    encode_replica_response_head,
    read_replica_fetch_fast,
)
from engine.wire.fetch_bytes import FIRST_WITH_REPLICA_STATE, FetchRequest
from engine.wire.headers import response_header_bytes

#: A response to send; for a fast-path request with its header.
FollowerResponse: TypeAlias = bytes | EncodedResponse
#: Encodes the response to a session's request, by its epoch, from the results of all partitions.
AnswerAll: TypeAlias = Callable[
    [FetchSession, int, list[SessionPartition], FetchResults], EncodedResponse
]


class FastFollowerFetch:
    """The sessions of one broker's followers that have a parked fetch, by id."""

    def __init__(
        self, metadata_cache: MetadataCache, sessions: FetchSessionCache, clock: Clock
    ) -> None:
        """Create the fast path for followers that repeat a parked fetch; no fetch is parked yet."""
        self._is_known = metadata_cache.is_known
        self._sessions = sessions
        self._clock = clock
        self._parked: dict[int, ParkedSession] = {}

    @property
    def parked_count(self) -> int:
        """Return the number of sessions with a parked fetch."""
        return len(self._parked)

    def begin(
        self,
        context: FetchContext,
        request: FetchRequest,
        params: FetchParams,
        exchange: Exchange,
        answer_all: AnswerAll,
    ) -> ParkedSession | None:
        """Return a parked session for a follower's request; None if the request may not be parked.

        The caller's read calls its `park` if there are no records yet. A request without a fetch
        session is never parked.
        """
        session, version = context.session, exchange.api_version
        if (
            session is None
            or not FIRST_WITH_REPLICA_STATE <= version <= LAST_VERSION
            or request.replica_id < 0
            or request.isolation_level
            or params.min_bytes > 1
            or exchange.throttle_ms
            or not session.uses_ids
            or not exchange.session.may_take_fast_path
        ):
            return None
        earlier = self._parked.get(session.id)
        if earlier is not None:
            earlier.end()
        limits = ReplicaLimits(
            version,
            request.max_wait_ms,
            request.min_bytes,
            request.max_bytes,
            session.id,
            request.replica_id,
            request.replica_epoch,
        )
        return ParkedSession(self._parked, session, limits, answer_all, exchange.session)

    def answer(
        self, frame: memoryview, client: Session
    ) -> FollowerResponse | Promise[FollowerResponse] | None:
        """Serve a fetch by its session's parked fetch; return the response with its header.

        Returns None, with nothing done, if the general path must serve the request. The caller
        checks that nothing can be denied to the client.
        """
        request = read_replica_fetch_fast(frame) if client.may_take_fast_path else None
        if request is None:
            return None
        _, limits, epoch, topic_id, index, _, _, _, _, _ = request
        _, _, _, _, session_id, _, _ = limits
        parked = self._parked.get(session_id)
        if parked is None or parked.limits != limits:
            return None
        sessions = self._sessions
        session = sessions.find_ongoing(session_id, epoch, uses_ids=True)
        if session is None or session is not parked.session or epoch != parked.epoch:
            return None
        partition = session.partitions.get((topic_id, index))
        if (
            partition is None
            or partition.topic_partition is None
            or not self._is_known(partition.topic_partition)
        ):
            return None
        fetch = parked.fetch
        if fetch is None or not parked.encoder.may_fetch_alone(fetch, partition.topic_partition):
            return None
        sessions.advance(session, self._clock.monotonic_ms())
        return parked.continue_with(fetch, partition, request)


class ParkedSession:
    """One follower's session with a parked fetch, and its request that has no response yet."""

    __slots__ = (
        "_answer_all",
        "_client",
        "_correlation_id",
        "_parked",
        "_response",
        "encoder",
        "epoch",
        "fetch",
        "first_response",
        "limits",
        "partitions",
        "session",
    )

    def __init__(
        self,
        parked: dict[int, ParkedSession],
        session: FetchSession,
        limits: ReplicaLimits,
        answer_all: AnswerAll,
        client: Session,
    ) -> None:
        """Create the state of a follower's fetch session, without a parked fetch yet.

        `client` is the connection of the session's first request; `limits` are the fields that
        later requests must repeat. `answer_all` is the general path.
        """
        self.session = session
        self.limits = limits
        #: The epoch of the session after its latest request here.
        self.epoch = session.epoch
        #: Writes records of the parked fetch as the next response.
        self.encoder = RemoteEncoder(self._respond)
        #: The parked fetch; None while the session has none.
        self.fetch: ParkedFetch | None = None
        #: Response to the request with which the parked session began. The server writes its
        #: header; later ones are written here.
        self.first_response: Promise[FollowerResponse] = Promise()
        #: Response to the last request. None: it was sent.
        self._response: Promise[FollowerResponse] | None = self.first_response
        self._client = client
        #: Correlation id of the last request; None for the first one, whose header the server
        #: writes.
        self._correlation_id: int | None = None
        self._parked = parked
        self._answer_all = answer_all
        #: The positions of the session, and the offsets last sent for each.
        self.partitions = {
            partition.topic_partition: partition
            for partition in session.partitions.values()
            if partition.topic_partition is not None
        }

    def park(
        self,
        deadline_ms: int,
        params: FetchParams,
        keys: Iterable[TopicPartition],
        leader: LeaderSide,
    ) -> ParkedFetch:
        """Park a fetch that waits for records at this leader; return it.

        The read calls this if there are no records yet, see `engine.replication.parked_fetch.Park`.
        """
        fetch = ParkedFetch(deadline_ms, params, keys, leader, self.partitions, self.encoder)
        self.fetch = fetch
        self._parked[self.session.id] = self
        self._client.parked[self] = self.end
        self.first_response.source = self
        promise = fetch.promise
        promise.watch(lambda: self._on_fetch_end(promise))
        return fetch

    def continue_with(
        self, fetch: ParkedFetch, partition: SessionPartition, request: ReplicaFetch
    ) -> Promise[FollowerResponse]:
        """Continue the parked fetch with the session's next request; promise its response."""
        correlation_id, _, _, _, _, leader_epoch, offset, fetched_epoch, start, max_bytes = request
        topic_partition = partition.topic_partition
        assert topic_partition is not None
        partition.spec = new_tuple(
            FetchSpec,
            (
                offset,
                max_bytes,
                leader_epoch if leader_epoch >= 0 else None,
                fetched_epoch if fetched_epoch >= 0 else None,
                start,
            ),
        )
        self.epoch = self.session.epoch
        self._correlation_id = correlation_id
        response = self._response = Promise()
        response.source = self
        self.encoder.on_request(fetch, topic_partition)
        return response

    def end(self) -> None:
        """End the parked fetch, because the general path has advanced the session.

        A fetch whose request still waits for its response remains.
        """
        fetch = self.fetch
        if fetch is not None and not self.encoder.is_requested and fetch.abandon():
            self._forget()

    def abandon(self) -> None:
        """End the parked fetch without a response: the connection of its request is closed."""
        fetch = self.fetch
        if fetch is not None and fetch.abandon():
            self._response = None
            self._forget()

    def _respond(self, here: Partition, records: bytes | FetchSlice) -> bool:
        """Respond to the waiting request with records of one partition.

        Called when they are appended. False if the general path has advanced the session. Raises
        StorageError, with nothing changed, if the records cannot be read.
        """
        session = self.session
        partition = self.partitions[here.topic_partition]
        key = partition.key
        topic_id, index = key
        if session.epoch != self.epoch or session.partitions.get(key) is not partition:
            return False
        assert isinstance(topic_id, bytes)
        sent = records if isinstance(records, bytes) else region_of(records)
        session.put_last(partition)
        log, watermark = here.log, here.high_watermark
        start = log.log_start_offset
        partition.note_offsets(watermark, start)
        correlation_id = self._correlation_id
        size = len(sent) if isinstance(sent, bytes) else sent[1]
        head = encode_replica_response_head(
            correlation_id or 0,
            session.id,
            topic_id,
            (index, watermark, log.last_stable_offset(watermark), start),
            size,
        )
        if correlation_id is None:
            head = head[RESPONSE_HEADER_BYTES:]
        response, self._response = self._response, None
        assert response is not None
        response.source = None
        response.keep(_join_parts(head, sent))
        return True

    def _on_fetch_end(self, read: Promise[FetchResults]) -> None:
        """Respond to the pending request, if there is one, with the read of all partitions.

        The parked fetch has ended: the next request takes the general path.
        """
        self._forget()
        response, self._response = self._response, None
        if response is None:
            if read.error is None:
                release_results(read.result())
            return
        response.source = None
        response.keep_with(lambda: self._encode_all(read.result()))

    def _encode_all(self, results: FetchResults) -> EncodedResponse:
        """Encode the results of all partitions by the general path.

        A request of the fast path gets its response header too, which the server writes for others.
        """
        partitions = self.named_by(results)
        body = self._answer_all(self.session, self.epoch, partitions, results)
        if self._correlation_id is None:
            return body
        version, *_ = self.limits
        head = response_header_bytes(FETCH_KEY, version, self._correlation_id)
        return EncodedResponse([head, *body.parts], body.on_sent, body.errors)

    def named_by(self, results: FetchResults) -> list[SessionPartition]:
        """Return the session's partition of each result, in the order of the results."""
        return [self.partitions[topic_partition] for topic_partition, _ in results]

    def _forget(self) -> None:
        """Drop the parked fetch and remove the session from both registries that list it."""
        self.fetch = None
        self._client.parked.pop(self, None)
        if self._parked.get(self.session.id) is self:
            del self._parked[self.session.id]


def _join_parts(
    head: bytes, records: bytes | tuple[SendPart, int, Callable[[], None] | None]
) -> FollowerResponse:
    """Return head and records as one response.

    A file region, and large records, stay a separate part, so that they are not copied.
    """
    if isinstance(records, bytes):
        if len(records) <= JOINED_FETCH_BYTES_MAX:
            return head + records + TAGS_AFTER_RECORDS
        return EncodedResponse([head, records, TAGS_AFTER_RECORDS])
    part, _, release = records
    return EncodedResponse([head, part, TAGS_AFTER_RECORDS], release)
