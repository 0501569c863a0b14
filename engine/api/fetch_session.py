"""Fetch sessions (KIP-227): requests name only what has changed since the session's last one.

```
request (session, epoch)     context      answer
 any id, −1                  sessionless  all partitions, session 0; a session of that id ends
 any id, 0                   full         all partitions, a new session if there is room
 id, next epoch              incremental  partitions with news; those with bytes go to the back
 unknown id                  error        FETCH_SESSION_ID_NOT_FOUND 70
 id, another epoch           error        INVALID_FETCH_SESSION_EPOCH 71
 id, ids for names, or back  error        FETCH_SESSION_TOPIC_ID_ERROR 106
```

News is bytes, an error, a diverging log, or another watermark or log start than was sent before.

When the cache is full, a new session takes the place of one unused for longer than the eviction
time, or of the first below it in the order (consumers before followers, small before large, old id
before new) that has had that time; a follower may also push out consumers that have not.

Source: REPL-5, KIP-227, KIP-516; Kafka's FetchSession.
Differs: one cache, not eight shards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from engine.host.ports import Entropy
from engine.ids import uuid_text
from engine.kafka_errors import (
    FETCH_SESSION_ID_NOT_FOUND,
    FETCH_SESSION_TOPIC_ID_ERROR,
    INVALID_FETCH_SESSION_EPOCH,
)
from engine.limits import FETCH_SESSION_EVICTION_MS
from engine.model import TopicPartition, new_tuple
from engine.replication.metadata_cache import MetadataCache
from engine.replication.partition_types import FetchSpec
from engine.wire.fetch_bytes import (
    FIRST_WITH_TOPIC_IDS,
    FetchedPartition,
    FetchRequest,
    ForgottenTopic,
    RequestedPartition,
)

NO_SESSION = 0
#: The epoch that requests a new session.
INITIAL_EPOCH = 0
#: The epoch that requests no session, and ends the session of the request.
FINAL_EPOCH = -1
_EPOCH_MAX = 0x7FFFFFFF
_SESSION_IDS = 0x7FFFFFFE

#: A topic's name or id in the client's request, and the partition.
SessionKey: TypeAlias = tuple[str | bytes, int]


class SessionPartition:
    """A partition as a client requested it, and the offsets that it was last sent.

    `topic_partition` is None while the topic's id is unknown.
    """

    __slots__ = (
        "high_watermark",
        "key",
        "log_start_offset",
        "spec",
        "topic_id_text",
        "topic_partition",
    )

    def __init__(
        self, key: SessionKey, requested: RequestedPartition, metadata_cache: MetadataCache
    ) -> None:
        """Create from a partition as a Fetch requests it.

        A topic id is resolved to the topic's name.
        """
        self.key = key
        #: Position and limits as last requested.
        self.spec = make_spec(requested)
        #: Offsets of the last response, −1 before the first: the partition is in a response only if
        #: they have changed or it has records.
        self.high_watermark = -1
        self.log_start_offset = -1
        self.topic_partition: TopicPartition | None = None
        #: Topic id of the request; None if the topic is requested by name.
        self.topic_id_text: str | None = None
        topic, index = key
        if isinstance(topic, bytes):
            self.topic_id_text = uuid_text(topic)
            self.resolve(metadata_cache)
        else:
            self.topic_partition = new_tuple(TopicPartition, (topic, index))

    @property
    def index(self) -> int:
        """Return the partition's number in its topic."""
        _, index = self.key
        return index

    def resolve(self, metadata_cache: MetadataCache) -> None:
        """Set the topic's name by its id again.

        The topic may have been created or deleted meanwhile.
        """
        topic, index = self.key
        name = metadata_cache.topic_name(topic) if isinstance(topic, bytes) else topic
        self.topic_partition = None if name is None else TopicPartition(name, index)

    def update_request_params(self, requested: RequestedPartition) -> None:
        """Store position and limits of a later request for the partition."""
        self.spec = make_spec(requested)

    def note_offsets(self, high_watermark: int, log_start_offset: int) -> bool:
        """Store the offsets that a response has for the partition.

        True if they differ from the last. Only a partition with a difference, or with records, is
        in an incremental response.
        """
        if self.high_watermark == high_watermark and self.log_start_offset == log_start_offset:
            return False
        self.high_watermark = high_watermark
        self.log_start_offset = log_start_offset
        return True

    def note_response(self, fetched: FetchedPartition) -> bool:
        """Store the offsets of a response row; True if the row has news for the client.

        That are other offsets than before, records, a diverging epoch, or an error.
        """
        is_news = self.note_offsets(fetched.high_watermark, fetched.log_start_offset)
        if fetched.records or fetched.diverging is not None:
            is_news = True
        if fetched.error_code:
            # So that the next response without an error counts as changed.
            self.high_watermark = -1
            is_news = True
        return is_news


#: Each partition that was read, with its response row, in the order of reading.
FetchedPartitions: TypeAlias = list[tuple[SessionPartition, FetchedPartition]]


def make_spec(requested: RequestedPartition) -> FetchSpec:
    """Convert a requested partition to a FetchSpec; epochs below 0 become None."""
    _, leader_epoch, offset, fetched_epoch, log_start, max_bytes = requested
    return new_tuple(
        FetchSpec,
        (
            offset,
            max_bytes,
            leader_epoch if leader_epoch >= 0 else None,
            fetched_epoch if fetched_epoch >= 0 else None,
            log_start,
        ),
    )


class FetchSession:
    """The state of one client's session."""

    __slots__ = (
        "created_ms",
        "epoch",
        "id",
        "is_follower",
        "last_used_ms",
        "partitions",
        "uses_ids",
    )

    def __init__(
        self,
        session_id: int,
        partitions: dict[SessionKey, SessionPartition],
        now_ms: int,
        *,
        is_follower: bool,
        uses_ids: bool,
    ) -> None:
        """Create a session at epoch 1; called only by `FetchSessionCache`."""
        self.id = session_id
        self.partitions = partitions
        self.is_follower = is_follower
        self.uses_ids = uses_ids
        #: Times (monotonic) that decide which session is evicted when the cache is full.
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        #: Epoch that the next request must have.
        self.epoch = _next_epoch(INITIAL_EPOCH)

    def put_last(self, partition: SessionPartition) -> None:
        """Move a partition whose records were returned to the end, so that others are read first.

        A removed partition stays removed.
        """
        if self.partitions.get(partition.key) is partition:
            self.partitions[partition.key] = self.partitions.pop(partition.key)


def _next_epoch(epoch: int) -> int:
    """Return the next epoch of a fetch session: 1 after the largest, as 0 begins a session."""
    return 1 if epoch == _EPOCH_MAX else epoch + 1


class SessionResponse(NamedTuple):
    """The rows of a response that are sent, the session's id and its error."""

    partitions: FetchedPartitions
    session_id: int = NO_SESSION
    error_code: int = 0


class FetchContext:
    """One fetch by its session; without a session all partitions are read and sent."""

    __slots__ = ("partitions",)

    #: The session that the fetch continues, None without one.
    session: FetchSession | None = None

    def __init__(self, partitions: Iterable[SessionPartition]) -> None:
        #: The partitions to read, in this order.
        self.partitions: Sequence[SessionPartition] = list(partitions)

    def answer(self, partitions: FetchedPartitions) -> SessionResponse:
        """Return the rows to send from the fetched ones, and note them in the session, if any.

        Called once per request. Without a session, all rows are sent.
        """
        return SessionResponse(partitions)

    def throttled(self) -> SessionResponse:
        """Return the response to a throttled client: no rows, and the session is unchanged.

        Source: FetchContext.getThrottledResponse.
        """
        return SessionResponse([])


class _ErrorContext(FetchContext):
    __slots__ = ("_error_code",)

    def __init__(self, error_code: int) -> None:
        super().__init__(())
        self._error_code = error_code

    def answer(self, partitions: FetchedPartitions) -> SessionResponse:
        """Return the error for which the request has no session; no partition is sent."""
        return SessionResponse([], NO_SESSION, self._error_code)

    def throttled(self) -> SessionResponse:
        """Return the response to a throttled fetch: the error of `answer`, which has precedence."""
        return self.answer([])


class _FullContext(FetchContext):
    __slots__ = ("_is_follower", "_now_ms", "_sessions", "_uses_ids")

    def __init__(
        self,
        partitions: Iterable[SessionPartition],
        sessions: FetchSessionCache,
        now_ms: int,
        *,
        is_follower: bool,
        uses_ids: bool,
    ) -> None:
        """Create the context of a full Fetch.

        `answer` creates its session, if the cache has room.
        """
        super().__init__(partitions)
        self._sessions = sessions
        self._now_ms = now_ms
        self._is_follower = is_follower
        self._uses_ids = uses_ids

    def answer(self, partitions: FetchedPartitions) -> SessionResponse:
        """Return every partition of a full fetch, and open a session for the next fetches.

        The session id is 0 if the cache has no room for a session.
        """
        for partition, fetched in partitions:
            partition.note_response(fetched)
        session_id = self._sessions.maybe_create(
            [partition for partition, _ in partitions],
            self._now_ms,
            is_follower=self._is_follower,
            uses_ids=self._uses_ids,
        )
        return SessionResponse(partitions, session_id)


class _IncrementalContext(FetchContext):
    # Source: FET-7.
    def __init__(self, session: FetchSession, epoch: int) -> None:
        super().__init__(session.partitions.values())
        self.session: FetchSession = session
        self._epoch = epoch

    def answer(self, partitions: FetchedPartitions) -> SessionResponse:
        """Return only the partitions that have changed since the session's last response.

        INVALID_FETCH_SESSION_EPOCH if a later request has advanced the session meanwhile.
        """
        session = self.session
        if session.epoch != self._epoch:
            # The session has advanced by a later request: this response is outdated.
            return SessionResponse([], session.id, INVALID_FETCH_SESSION_EPOCH)
        news: FetchedPartitions = []
        for partition, fetched in partitions:
            if not partition.note_response(fetched):
                continue
            news.append((partition, fetched))
            if fetched.records:
                session.put_last(partition)
        return SessionResponse(news, session.id)

    def throttled(self) -> SessionResponse:
        """Return the response of a throttled fetch, which has no rows.

        The code is INVALID_FETCH_SESSION_EPOCH if a later request has advanced the session.
        """
        is_overtaken = self.session.epoch != self._epoch
        code = INVALID_FETCH_SESSION_EPOCH if is_overtaken else 0
        return SessionResponse([], self.session.id, code)


class FetchSessionCache:
    """The sessions of one broker."""

    def __init__(
        self, metadata_cache: MetadataCache, entropy: Entropy, *, slots: int = 1000
    ) -> None:
        """Create for up to `slots` sessions (max.incremental.fetch.session.cache.slots)."""
        self._metadata_cache = metadata_cache
        self._entropy = entropy
        self._slots = slots
        #: Counts sessions that were removed to make room for others.
        self.evicted_count = 0
        #: Sessions by id, the least recently used first.
        self._sessions: dict[int, FetchSession] = {}

    def __len__(self) -> int:
        """Return the number of sessions."""
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        """Return the number of partitions of all sessions."""
        return sum(len(session.partitions) for session in self._sessions.values())

    def open_context(
        self,
        request: FetchRequest,
        api_version: int,
        now_ms: int,
        named: dict[SessionKey, SessionPartition] | None = None,
    ) -> FetchContext:
        """Return the context of a Fetch by its session id and epoch; advance its session.

        A full request ends its session, INITIAL_EPOCH begins another one. `named` is the result of
        `add_named` for all partitions of the request, if it has no session.
        """
        uses_ids = api_version >= FIRST_WITH_TOPIC_IDS
        epoch = request.session_epoch
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._sessions.pop(request.session_id, None)
            requested = (self._requested_partitions(request) if named is None else named).values()
            if epoch == FINAL_EPOCH:
                return FetchContext(requested)
            is_follower = request.replica_id >= 0
            return _FullContext(requested, self, now_ms, is_follower=is_follower, uses_ids=uses_ids)
        session = self._sessions.get(request.session_id)
        if session is None:
            return _ErrorContext(FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            return _ErrorContext(INVALID_FETCH_SESSION_EPOCH)
        if session.uses_ids != uses_ids:
            return _ErrorContext(FETCH_SESSION_TOPIC_ID_ERROR)
        return self._update_session(session, request, now_ms)

    def _requested_partitions(self, request: FetchRequest) -> dict[SessionKey, SessionPartition]:
        """Return the request's partitions by topic (name or id) and index, in request order."""
        named: dict[SessionKey, SessionPartition] = {}
        for topic, partitions in request.topics:
            self.add_named(topic, partitions, named)
        return named

    def add_named(
        self,
        topic: str | bytes,
        partitions: Iterable[RequestedPartition],
        named: dict[SessionKey, SessionPartition],
    ) -> None:
        """Add the partitions of a topic to `named`; for duplicates the last parameters are used."""
        for requested in partitions:
            key = (topic, requested.partition)
            partition = named.get(key)
            if partition is None:
                named[key] = SessionPartition(key, requested, self._metadata_cache)
            else:
                partition.update_request_params(requested)

    def _update_session(
        self, session: FetchSession, request: FetchRequest, now_ms: int
    ) -> FetchContext:
        """Update a session's partitions by the request, and return the request's context.

        A session that becomes empty is closed.
        """
        partitions = session.partitions
        for topic, requested_partitions in request.topics:
            for requested in requested_partitions:
                key = (topic, requested.partition)
                partition = partitions.get(key)
                if partition is None:
                    partitions[key] = SessionPartition(key, requested, self._metadata_cache)
                else:
                    partition.update_request_params(requested)
        _remove_forgotten(partitions, request.forgotten)
        if not partitions:
            del self._sessions[session.id]
            return FetchContext(())
        self.advance(session, now_ms)
        if session.uses_ids:
            for partition in partitions.values():
                if partition.topic_partition is None:
                    partition.resolve(self._metadata_cache)
        return _IncrementalContext(session, session.epoch)

    def find_ongoing(self, session_id: int, epoch: int, *, uses_ids: bool) -> FetchSession | None:
        """Return the session that a request of this epoch continues.

        None if the session is unknown or evicted, has another epoch, or was opened by topic names
        where the request has ids, or vice versa.
        """
        session = self._sessions.get(session_id)
        if session is None or session.epoch != epoch or session.uses_ids != uses_ids:
            return None
        return session

    def advance(self, session: FetchSession, now_ms: int) -> int:
        """Advance a session by one request, and move it to the end of the eviction order.

        Returns the epoch that the session's next request must have.
        """
        # Move it to the end: sessions are in the order of their last use.
        session_id = session.id
        del self._sessions[session_id]
        self._sessions[session_id] = session
        session.last_used_ms = now_ms
        epoch = session.epoch = _next_epoch(session.epoch)
        return epoch

    @staticmethod
    def context_of(session: FetchSession, epoch: int) -> FetchContext:
        """Return the context of a request that advanced its session to this epoch."""
        return _IncrementalContext(session, epoch)

    def maybe_create(
        self,
        partitions: Iterable[SessionPartition],
        now_ms: int,
        *,
        is_follower: bool,
        uses_ids: bool,
    ) -> int:
        """Create a session if a slot is free or can be freed.

        Returns its id, 0 if none was created.
        """
        kept = {partition.key: partition for partition in partitions}
        if len(self._sessions) >= self._slots and not self._evict(is_follower, len(kept), now_ms):
            return NO_SESSION
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = 1 + self._entropy.random_below(_SESSION_IDS)
        self._sessions[session_id] = FetchSession(
            session_id, kept, now_ms, is_follower=is_follower, uses_ids=uses_ids
        )
        return session_id

    def _evict(self, is_follower: bool, size: int, now_ms: int) -> bool:
        """Remove a session to make room for a new one of `size` partitions.

        Returns True if one was removed. It is one that was unused for long; else the least
        privileged old one (consumers before followers, smaller before larger), if the new session
        is more privileged.
        """
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None:
            return False
        if now_ms - oldest.last_used_ms > FETCH_SESSION_EVICTION_MS:
            del self._sessions[oldest.id]
            self.evicted_count += 1
            return True
        ranks = [
            (session.is_follower, len(session.partitions), session.id)
            for session in self._sessions.values()
            if session.last_used_ms - session.created_ms > FETCH_SESSION_EVICTION_MS
            or (is_follower and not session.is_follower)
        ]
        least = min(ranks, default=None)
        if least is None or (is_follower, size, 0) < least:
            return False
        _, _, session_id = least
        del self._sessions[session_id]
        self.evicted_count += 1
        return True


def _remove_forgotten(
    partitions: dict[SessionKey, SessionPartition], forgotten: Iterable[ForgottenTopic]
) -> None:
    """Remove the request's forgotten partitions; unknown partitions are ignored."""
    for topic, indexes in forgotten:
        for index in indexes:
            partitions.pop((topic, index), None)
