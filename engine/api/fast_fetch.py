"""The fast path of Fetch: one partition for a consumer, without the detours of `Fetch.answer`.

```
request ─ one partition, with or without a session? ─ read ─┬─ enough bytes ──────────> reply
                                                            └─ at the end ─ waits ─> read again
```

All other requests are left to `Fetch.answer`, which then finds everything unchanged:
followers, new sessions, several partitions, all refusals, records that are converted,
aborted transactions, clients that can be denied something, or that may be sent to a nearer
replica. A response from here is byte for byte that of `Fetch.answer`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from engine.api.admission import AclOperation, AclResource
from engine.api.exchange import EncodedResponse, Exchange
from engine.api.fetch_refusal import fetch_refusal
from engine.api.fetch_session import (
    FINAL_EPOCH,
    FetchContext,
    FetchSession,
    FetchSessionCache,
    SessionPartition,
    make_spec,
)
from engine.api.response_errors import ONE_SUCCESS
from engine.errors import ApiError, StorageError
from engine.host.ports import FileRegion
from engine.host.promise import Promise
from engine.limits import JOINED_FETCH_BYTES_MAX
from engine.log.log_types import FetchSlice, OffsetMetadata
from engine.model import new_tuple
from engine.replication.delayed_fetch import WaitingPartition
from engine.replication.metadata_cache import MetadataCache
from engine.replication.partition_types import CONSUMER_ID, FastRead, FetchParams, FetchSpec
from engine.replication.replica_manager import ReplicaManager
from engine.replication.topic_counts import ONE
from engine.replication.watermark import Isolation
from engine.wire.fast_fetch_bytes import (
    TAGS_AFTER_RECORDS,
    answer_without_news,
    encode_response_head,
)
from engine.wire.fetch_bytes import (
    FIRST_FLEXIBLE,
    FIRST_FROM_FOLLOWERS,
    FIRST_WITH_TOPIC_IDS,
    FetchRequest,
    RequestedTopic,
)

#: From this version on records of every codec are sent unchanged.
_FIRST_FAST = 10
#: The isolations by the number of the isolation level.
_READERS = (Isolation.HIGH_WATERMARK, Isolation.COMMITTED)
_COMMITTED = Isolation.COMMITTED


class Requested(NamedTuple):
    """The request of one fetch; `epoch` is the session epoch of the next request."""

    partition: SessionPartition
    spec: FetchSpec
    params: FetchParams
    session: FetchSession | None
    epoch: int
    exchange: Exchange


FastResponse: TypeAlias = bytes | EncodedResponse
#: Reads again and responds to a fetch that has waited, on the general path.
AnswerAfterWait: TypeAlias = Callable[[Requested, FetchContext], EncodedResponse]


class FastFetch:
    """Answers fetches of one partition.

    `answer_after_wait` answers a fetch that has waited, with all records up to its limit.
    """

    def __init__(
        self,
        replica_manager: ReplicaManager,
        metadata_cache: MetadataCache,
        sessions: FetchSessionCache,
        max_bytes: int,
        answer_after_wait: AnswerAfterWait,
    ) -> None:
        """Create the fast path; `max_bytes` is the broker's fetch.max.bytes.

        `answer_after_wait` is the general path for a fetch that has waited.
        """
        self._replica_manager = replica_manager
        self._partitions = replica_manager.partitions
        self._metadata_cache = metadata_cache
        self._sessions = sessions
        self._max_bytes = max_bytes
        self._answer_after_wait = answer_after_wait
        #: Whether consumers may be sent to a follower (a replica selector is set).
        self._sends_elsewhere = replica_manager.sends_elsewhere

    def answer(
        self, request: FetchRequest, exchange: Exchange
    ) -> FastResponse | Promise[FastResponse] | None:
        """Serve a consumer's Fetch of one partition; return the response or a promise of it.

        None, with nothing done, if the general path must serve the request.
        """
        (
            replica_id, max_wait_ms, min_bytes, max_bytes, isolation, session_id, epoch, topics,
            forgotten, rack_id, _,
        ) = request  # fmt: skip
        version = exchange.api_version
        if (
            replica_id >= 0
            or forgotten
            or version < _FIRST_FAST
            or not 0 <= isolation <= 1
            or not (exchange.session.may_take_fast_path or exchange.session.is_undelayed)
            or (rack_id and self._sends_elsewhere)
        ):
            return None
        session: FetchSession | None = None
        if epoch > 0:
            uses_ids = version >= FIRST_WITH_TOPIC_IDS
            session = self._sessions.find_ongoing(session_id, epoch, uses_ids=uses_ids)
            if session is None:
                return None
            only = _only_partition_of_session(session, topics)
        elif epoch == FINAL_EPOCH and not session_id:
            only = self._only_requested(topics)
        else:
            return None
        if only is None:
            return None
        partition, spec = only
        named, client = partition.topic_partition, exchange.session
        if named is None or not (
            client.may_take_fast_path
            or client.is_admitted(AclOperation.READ, AclResource.TOPIC, named.topic)
        ):
            return None
        # Here and in `read_fast` not min(): its call takes longer than the rest of the line.
        max_bytes = max_bytes if max_bytes <= self._max_bytes else self._max_bytes
        reader = _READERS[isolation]
        read = self._read(partition, spec, max_bytes, reader)
        if read is None:
            return None
        records = read.records
        size = len(records) if isinstance(records, bytes) else records.size_bytes
        if size < min_bytes and size < max_bytes and max_wait_ms > 0:
            if size:
                _release_slice(records)
                return None
            params = new_tuple(
                FetchParams,
                (
                    CONSUMER_ID,
                    max_wait_ms,
                    min(min_bytes, max_bytes),
                    max_bytes,
                    reader,
                    version < FIRST_FROM_FOLLOWERS,
                    False,
                    None,
                ),
            )
            return self._park(partition, spec, params, session, exchange)
        if session is not None:
            self._sessions.advance(session, exchange.received_ms)
            partition.spec = spec
        read.counts.fast_reads += ONE + size
        has_aborted = reader is _COMMITTED
        return _encode_response(partition, session, read, version, has_aborted=has_aborted)

    def _only_requested(
        self, topics: list[RequestedTopic]
    ) -> tuple[SessionPartition, FetchSpec] | None:
        """Return the one partition that a request names, with the read.

        None if it names another number.
        """
        if len(topics) != 1:
            return None
        ((topic, partitions),) = topics
        if len(partitions) != 1:
            return None
        (requested,) = partitions
        partition = SessionPartition((topic, requested.partition), requested, self._metadata_cache)
        return partition, partition.spec

    def _read(
        self, partition: SessionPartition, spec: FetchSpec, max_bytes: int, isolation: Isolation
    ) -> FastRead | None:
        """Read one partition for a consumer.

        None if the general path, `Fetch.answer`, must serve it. That is so for an unknown or
        refused partition, and after an error.
        """
        topic_partition = partition.topic_partition
        if topic_partition is None:
            return None
        here = self._partitions.get(topic_partition)
        id_text = partition.topic_id_text
        if here is None or fetch_refusal(topic_partition, id_text, self._metadata_cache, here):
            return None
        try:
            return here.read_fast(spec, max_bytes, isolation)
        except (ApiError, StorageError):
            # `Fetch.answer` gets the error again, and responds with it.
            return None

    def _park(
        self,
        partition: SessionPartition,
        spec: FetchSpec,
        params: FetchParams,
        session: FetchSession | None,
        exchange: Exchange,
    ) -> Promise[FastResponse] | None:
        """Park a fetch of a consumer that has read to the log end offset; promise its response.

        None if there are records above the consumer's bound: `Fetch.answer` must serve it.
        """
        topic_partition = partition.topic_partition
        assert topic_partition is not None
        here = self._partitions[topic_partition]
        log = here.log
        offset = spec.fetch_offset
        if offset != log.log_end_offset:
            return None
        here.counts.fetches += 1
        received_ms = exchange.received_ms
        epoch = 0
        if session is not None:
            epoch = self._sessions.advance(session, received_ms)
            partition.spec = spec
        active = log.active_segment
        start = new_tuple(OffsetMetadata, (offset, active.base_offset, active.size_bytes))
        waiting = new_tuple(WaitingPartition, (topic_partition, spec, start))
        requested = new_tuple(Requested, (partition, spec, params, session, epoch, exchange))
        return self._replica_manager.wait_fast(
            received_ms + params.max_wait_ms,
            params,
            waiting,
            lambda: self._respond_after_wait(requested),
        )

    def _respond_after_wait(self, requested: Requested) -> FastResponse:
        """Return the response to a fetch that has waited, called when the wait ends.

        The general path makes it if a quota was set meanwhile, or the session has advanced.
        """
        partition, spec, params, session, epoch, exchange = requested
        if exchange.session.is_undelayed and (session is None or session.epoch == epoch):
            isolation = params.isolation
            read = self._read(partition, spec, params.max_bytes, isolation)
            if read is not None:
                records = read.records
                size = len(records) if isinstance(records, bytes) else records.size_bytes
                read.counts.bytes_out += size
                has_aborted = isolation is _COMMITTED
                return _encode_response(
                    partition, session, read, exchange.api_version, has_aborted=has_aborted
                )
        if session is None:
            return self._answer_after_wait(requested, FetchContext((partition,)))
        return self._answer_after_wait(requested, self._sessions.context_of(session, epoch))


def _only_partition_of_session(
    session: FetchSession, topics: list[RequestedTopic]
) -> tuple[SessionPartition, FetchSpec] | None:
    """Return the only partition of a session, with the read that the request wants of it.

    None if the session has several partitions, or the request names another one.
    """
    partitions = session.partitions
    if len(partitions) != 1:
        return None
    (partition,) = partitions.values()
    if not topics:
        return partition, partition.spec
    if len(topics) != 1:
        return None
    ((topic, requested_partitions),) = topics
    if len(requested_partitions) != 1:
        return None
    (requested,) = requested_partitions
    return (
        (partition, make_spec(requested)) if partition.key == (topic, requested.partition) else None
    )


def _release_slice(records: bytes | FetchSlice) -> None:
    """Release the slice of a log file that is not sent; bytes need no release."""
    if isinstance(records, FetchSlice):
        records.release()


def _encode_response(
    partition: SessionPartition,
    session: FetchSession | None,
    read: FastRead,
    version: int,
    *,
    has_aborted: bool,
) -> FastResponse:
    """Return the encoded response for one partition; `session` None: the fetch has no session.

    If nothing has changed since the session's last response, it has no partitions.
    """
    records, watermark, stable, log_start, _ = read
    on_sent: Callable[[], None] | None = None
    part: bytes | FileRegion
    if isinstance(records, bytes):
        part, size = records, len(records)
    else:
        part, size, on_sent = region_of(records)
    session_id = 0
    if session is not None:
        session_id = session.id
        is_news = partition.note_offsets(watermark, log_start)
        if not (size or is_news):
            body = answer_without_news(version, session_id)
            return new_tuple(EncodedResponse, ([body], None, ONE_SUCCESS))
    topic, index = partition.key
    offsets = (index, watermark, stable, log_start)
    head = encode_response_head(version, session_id, topic, offsets, size, has_aborted=has_aborted)
    if size <= JOINED_FETCH_BYTES_MAX and isinstance(part, bytes):
        return head + part + TAGS_AFTER_RECORDS if version >= FIRST_FLEXIBLE else head + part
    parts = [head, part, TAGS_AFTER_RECORDS] if version >= FIRST_FLEXIBLE else [head, part]
    return new_tuple(EncodedResponse, (parts, on_sent, None))


def region_of(
    records: FetchSlice,
) -> tuple[bytes | FileRegion, int, Callable[[], None] | None]:
    """Convert a slice of a log file into a part of a response, its size, and its release function.

    The part is a file region for sendfile; bytes, without a release, for a file in memory.
    """
    size = records.size_bytes
    descriptor = None if records.file is None else records.file.fileno()
    if descriptor is None:
        try:
            data = records.read()
        finally:
            records.release()
        return data, len(data), None
    return new_tuple(FileRegion, (descriptor, records.position, size)), size, records.release
