"""Fetch (1): batches for consumers and followers, now or when there are enough bytes.

```
request ─ session ─┬─ partition unknown ──────────────────────────────┐
                   └─ read, or wait ─ enough bytes, deadline ─ answers ┴─ session ─> news alone
```

| versions | difference |
|---|---|
| 0, 1 | messages of magic 0; from 2 on of magic 1 |
| 3 | the limit of all bytes gives way to the first batch |
| 4 | batches as they are; isolation levels |
| 5 | KAFKA_STORAGE_ERROR for a disk's failure, before it NOT_LEADER_OR_FOLLOWER |
| 7 | sessions |
| 10 | zstd |
| 11 | consumers may read from followers (KIP-392) |
| 12 | diverging epochs |
| 13 | topics by id |
| 16 | + the current leader (KIP-951) |

Source: KafkaApis.handleFetchRequest; FET-*, PUR-*.
Differs: a down-converted response is made whole before it is sent, not while it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import partial
from itertools import islice
from typing import NamedTuple

from engine.api.admission import AclOperation, AclResource, Audit, Session
from engine.api.exchange import EncodedResponse, Exchange, Handled
from engine.api.fast_fetch import FastFetch, Requested
from engine.api.fast_follower_fetch import FastFollowerFetch, ParkedSession
from engine.api.fetch_quota import (
    fetch_errors,
    quota_bytes_max,
    throttle_fetch,
    throttled_response,
)
from engine.api.fetch_records import FetchedRecords
from engine.api.fetch_refusal import fetch_refusal
from engine.api.fetch_session import (
    INITIAL_EPOCH,
    FetchContext,
    FetchedPartitions,
    FetchSession,
    FetchSessionCache,
    SessionKey,
    SessionPartition,
)
from engine.api.produce_leaders import CurrentLeaders
from engine.api.promised import in_order, promised
from engine.api.request_pieces import has_many_partitions, pieces
from engine.host.ports import FileRegion, SendPart
from engine.host.promise import Promise
from engine.host.turns import LoopTurns, Share
from engine.kafka_errors import (
    KAFKA_STORAGE_ERROR,
    NOT_LEADER_OR_FOLLOWER,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
)
from engine.limits import PARTITIONS_AT_ONCE_MAX, ROWS_PER_SHARE
from engine.model import TopicPartition, new_tuple
from engine.replication.delayed_fetch import FetchResult, FetchResults, release_results
from engine.replication.large_fetch import Reading
from engine.replication.metadata_cache import MetadataCache
from engine.replication.partition_types import (
    CONSUMER_ID,
    FetchClient,
    FetchParams,
    FetchSpec,
)
from engine.replication.replica_manager import ReplicaManager
from engine.replication.watermark import READ_COMMITTED, READ_UNCOMMITTED, Isolation
from engine.wire.fetch_bytes import (
    FIRST_FROM_FOLLOWERS,
    FIRST_WITH_TOPIC_IDS,
    NO_PREFERRED_REPLICA,
    FetchedPartition,
    FetchedTopic,
    FetchRequest,
    FetchResponse,
    encode_fetch_response,
    encode_fetch_response_in_pieces,
)
from engine.wire.layout import NO_UUID

_WITH_LEADER = (NOT_LEADER_OR_FOLLOWER, 74)
_ISOLATION_LEVELS = (READ_UNCOMMITTED, READ_COMMITTED)
_LAST_WITH_HARD_LIMIT = 2
_LAST_WITHOUT_STORAGE_ERROR = 5
_FIRST_WITH_LEADERS = 16


class FetchDeps(NamedTuple):
    """The parts that fetches read from; `max_bytes` is the broker's fetch.max.bytes."""

    replica_manager: ReplicaManager
    metadata_cache: MetadataCache
    sessions: FetchSessionCache
    max_bytes: int = 57_671_680


class _Wanted(NamedTuple):
    """The partitions of a request that are refused, and those to read."""

    refused: FetchedPartitions
    interesting: list[SessionPartition]
    specs: list[tuple[TopicPartition, FetchSpec]]


class Fetch:
    """Answers Fetch; takes requests that `read_fetch_request` decodes."""

    def __init__(
        self,
        deps: FetchDeps,
        turns: LoopTurns,
        followers: FastFollowerFetch | None = None,
    ) -> None:
        """Create the handler; without `followers` no follower's fetch is parked."""
        self._turns = turns
        self._replica_manager = deps.replica_manager
        self._followers = followers
        self._metadata_cache = deps.metadata_cache
        self._sessions = deps.sessions
        self._max_bytes = deps.max_bytes
        #: Fast path for requests of one partition; returns None if the general path must serve.
        self._answer_fast = FastFetch(*deps, self._answer_after_wait).answer

    def handle(self, request: FetchRequest, exchange: Exchange) -> Handled:
        """Return the response, or a promise of it if the fetch is delayed.

        The fast path is tried first, then `answer`.
        """
        response = self._answer_fast(request, exchange)
        return self.answer(request, exchange) if response is None else response

    def answer(self, request: FetchRequest, exchange: Exchange) -> Handled:
        """Serve any Fetch request by the general path; return the response, or a promise of it.

        A request of many partitions is served in turns of the event loop; one without enough
        records waits.
        """
        version = exchange.api_version
        if version >= FIRST_WITH_TOPIC_IDS and _opens_session_without_id(request):
            return self._unknown_error_response(request, exchange)
        if request.session_epoch <= INITIAL_EPOCH and has_many_partitions(request.topics):
            return self._answer_large(request, exchange, None)
        context = self._sessions.open_context(request, version, exchange.received_ms)
        is_follower = request.replica_id >= 0
        if len(context.partitions) > PARTITIONS_AT_ONCE_MAX and not is_follower:
            return self._answer_large(request, exchange, context)
        refused: FetchedPartitions = []
        interesting: list[SessionPartition] = []
        specs: list[tuple[TopicPartition, FetchSpec]] = []
        wanted = _Wanted(refused, interesting, specs)
        self._sort_partitions(context.partitions, wanted, exchange.session, is_follower=is_follower)
        if specs and request.isolation_level not in _ISOLATION_LEVELS:
            return self._unknown_error_response(request, exchange)
        read: FetchResults | Promise[FetchResults] = []
        parked: ParkedSession | None = None
        if specs:
            self._count_reads(specs)
            params = self._params(request, exchange)
            followers = self._followers
            if is_follower and not refused and followers is not None:
                parked = followers.begin(
                    context,
                    request,
                    params,
                    exchange,
                    partial(self._answer_parked, exchange, request.replica_id),
                )
            if parked is None:
                read = self._replica_manager.fetch(params, specs)
            else:
                read = self._replica_manager.fetch(params, specs, parked.park, parked.partitions)
        if parked is not None:
            if isinstance(read, Promise):
                return parked.first_response
            interesting = parked.named_by(read)

        def response(results: FetchResults) -> EncodedResponse:
            """Encode the response from the read of the partitions that were not refused."""
            return self._response(
                context, interesting, results, refused, exchange, replica_id=request.replica_id
            )

        return read.then(response) if isinstance(read, Promise) else response(read)

    def _sort_partitions(
        self,
        partitions: Iterable[SessionPartition],
        wanted: _Wanted,
        session: Session,
        *,
        is_follower: bool,
    ) -> None:
        """Add each partition of a request to `wanted`: as one to read, or as refused with a code.

        A follower needs CLUSTER_ACTION, a consumer READ on the topic.
        """
        refused, interesting, specs = wanted
        partitions = list(partitions)
        if is_follower:
            if not session.may_on_cluster(AclOperation.CLUSTER_ACTION):
                refused += [
                    (it, _refused_row(it.index, TOPIC_AUTHORIZATION_FAILED)) for it in partitions
                ]
                return
            denied: set[str] = set()
        else:
            denied = _denied_topics(partitions, session)
        for partition in partitions:
            topic_partition = partition.topic_partition
            code = self._refusal(topic_partition, partition.topic_id_text, denied)
            if code:
                refused.append((partition, _refused_row(partition.index, code)))
            else:
                assert topic_partition is not None
                interesting.append(partition)
                specs.append((topic_partition, partition.spec))
        # Kafka finds unknown ids before it checks ACLs.
        refused.sort(key=lambda each: each[1].error_code != UNKNOWN_TOPIC_ID)

    # Very many partitions

    def _answer_large(
        self, request: FetchRequest, exchange: Exchange, context: FetchContext | None
    ) -> Promise[EncodedResponse | None]:
        """Answer a request of many partitions in several turns of the event loop.

        `context` is the request's fetch context. None: the named partitions are checked first, then
        a session may begin.
        """
        over: Promise[None] = Promise()
        return in_order(promised(self._answer_in_turns(request, exchange, context, over)), over)

    async def _answer_in_turns(
        self,
        request: FetchRequest,
        exchange: Exchange,
        context: FetchContext | None,
        over: Promise[None],
    ) -> EncodedResponse | None:
        """Serve a Fetch of many partitions, a few of them per turn of the event loop.

        `over` is kept when only the wait for records remains: the connection's next request may
        then be served. Returns None if the reading has ended meanwhile, as when the broker stops.
        """
        share = self._turns.begin()
        if context is None:
            named: dict[SessionKey, SessionPartition] = {}
            for topic, requested in pieces(request.topics):
                if share.is_over():
                    await share.next()
                self._sessions.add_named(topic, requested, named)
            context = self._sessions.open_context(
                request, exchange.api_version, exchange.received_ms, named
            )
        wanted = _Wanted([], [], [])
        is_follower = request.replica_id >= 0
        for start in range(0, len(context.partitions), ROWS_PER_SHARE):
            if share.is_over():
                await share.next()
            some = context.partitions[start : start + ROWS_PER_SHARE]
            self._sort_partitions(some, wanted, exchange.session, is_follower=is_follower)
        if wanted.specs and request.isolation_level not in _ISOLATION_LEVELS:
            return self._unknown_error_response(request, exchange)
        self._count_reads(wanted.specs)
        params = self._params(request, exchange)
        topic_ids = {
            key.topic: it.topic_id_text
            for (key, _), it in zip(wanted.specs, wanted.interesting, strict=True)
            if it.topic_id_text is not None
        }
        large_fetches = self._replica_manager.fetches.large
        reading = large_fetches.begin()
        try:
            await large_fetches.fetch(
                params,
                wanted.specs,
                reading,
                share,
                partial(over.keep, None),
                topic_ids=topic_ids,
            )
            return await self._encode_in_turns(
                context, wanted, reading, exchange, share, replica_id=request.replica_id
            )
        finally:
            reading.end()

    async def _encode_in_turns(
        self,
        context: FetchContext,
        wanted: _Wanted,
        reading: Reading,
        exchange: Exchange,
        share: Share,
        *,
        replica_id: int,
    ) -> EncodedResponse | None:
        """Encode the response in several turns of the event loop.

        It owns the open files of `reading`. None if the reading has ended, as when the broker
        stops.
        """
        records = FetchedRecords(exchange.api_version)
        fetched: FetchedPartitions = []
        left = zip(wanted.interesting, reading.results, strict=False)
        while not reading.is_over() and (some := tuple(islice(left, ROWS_PER_SHARE))):
            fetched += [
                (partition, self.partition_row(partition, result, records))
                for partition, (_, result) in some
            ]
            if share.is_over():
                await share.next()
        if reading.is_over():
            return None
        fetched += wanted.refused
        throttle_ms = 0 if replica_id >= 0 else throttle_fetch(fetched, exchange)
        if throttle_ms:
            return throttled_response(context, exchange, throttle_ms)
        self._count_sent(fetched, replica_id)
        await share.next()
        # In one go: the next request of the session may come between two turns.
        whole = self._session_response(context, fetched, exchange)
        parts: list[SendPart] = []
        version = exchange.api_version
        for _ in encode_fetch_response_in_pieces(version, whole, parts, ROWS_PER_SHARE):
            if share.is_over():
                await share.next()
        if reading.is_over():
            return None
        reading.hand_over()
        on_sent = records.release if records.has_regions else None
        return EncodedResponse(parts, on_sent, fetch_errors(whole))

    def _answer_after_wait(self, requested: Requested, context: FetchContext) -> EncodedResponse:
        """Respond to a fast-path fetch that has waited, with the records that exist now."""
        partition, spec, params, _, _, exchange = requested
        assert partition.topic_partition is not None
        specs = [(partition.topic_partition, spec)]
        results = self._replica_manager.fetch(params._replace(max_wait_ms=0), specs)
        assert not isinstance(results, Promise)
        return self._response(context, [partition], results, [], exchange)

    def _answer_parked(
        self,
        exchange: Exchange,
        replica_id: int,
        session: FetchSession,
        epoch: int,
        partitions: list[SessionPartition],
        results: FetchResults,
    ) -> EncodedResponse:
        """Encode the response to a request of a follower's parked session, by the general path.

        `epoch` is the session's after the request, `exchange` that of the request that parked it.
        """
        context = self._sessions.context_of(session, epoch)
        return self._response(context, partitions, results, [], exchange, replica_id=replica_id)

    def _response(
        self,
        context: FetchContext,
        partitions: list[SessionPartition],
        results: FetchResults,
        refused: FetchedPartitions,
        exchange: Exchange,
        *,
        replica_id: int = CONSUMER_ID,
    ) -> EncodedResponse:
        """Return the encoded response; file regions are released after the send or on an error."""
        records = FetchedRecords(exchange.api_version)
        try:
            fetched = [
                (partition, self.partition_row(partition, result, records))
                for partition, (_, result) in zip(partitions, results, strict=True)
            ]
            throttle_ms = 0 if replica_id >= 0 else throttle_fetch(fetched + refused, exchange)
            if throttle_ms:
                records.release()
                return throttled_response(context, exchange, throttle_ms)
            whole = self._session_response(context, fetched + refused, exchange)
            parts = encode_fetch_response(exchange.api_version, whole)
            self._count_sent(fetched, replica_id)
        except BaseException:
            # No response is sent that would release the files.
            release_results(results)
            raise
        on_sent = records.release if records.has_regions else None
        return EncodedResponse(parts, on_sent, fetch_errors(whole))

    @staticmethod
    def _unknown_error_response(request: FetchRequest, exchange: Exchange) -> EncodedResponse:
        """Return UNKNOWN_SERVER_ERROR for a request that fails as a whole in Kafka."""
        version, throttle_ms = exchange.api_version, exchange.throttle_ms
        topics = [
            (
                topic,
                [
                    _refused_row(requested.partition, UNKNOWN_SERVER_ERROR, None)
                    for requested in partitions
                ],
            )
            for topic, partitions in request.topics
        ]
        if version >= FIRST_WITH_TOPIC_IDS:
            topics = []
        whole = FetchResponse(
            topics, UNKNOWN_SERVER_ERROR, request.session_id, throttle_ms=throttle_ms
        )
        return EncodedResponse(encode_fetch_response(version, whole), None, fetch_errors(whole))

    def _refusal(
        self, topic_partition: TopicPartition | None, topic_id: str | None, denied: set[str]
    ) -> int:
        """Return the error code of a partition that cannot be read, 0 if it can.

        `denied` are the topics that the client may not read.
        """
        if topic_partition is None:
            return UNKNOWN_TOPIC_ID
        if topic_partition.topic in denied:
            return TOPIC_AUTHORIZATION_FAILED
        here = self._replica_manager.partitions.get(topic_partition)
        return fetch_refusal(topic_partition, topic_id, self._metadata_cache, here)

    def _count_reads(self, specs: Iterable[tuple[TopicPartition, FetchSpec]]) -> None:
        """Count in the topic metrics the partitions that a request reads.

        A wait does not count again.
        """
        counts_of = self._replica_manager.topic_counts.counts_of
        for (topic, _), _ in specs:
            counts_of(topic).fetches += 1

    def _count_sent(self, fetched: FetchedPartitions, replica_id: int) -> None:
        """Count in the topic metrics the bytes of sent records, to a consumer or to a follower."""
        partitions = self._replica_manager.partitions
        for partition, row in fetched:
            key, records = partition.topic_partition, row.records
            size = 0
            if records:
                size = records.length if isinstance(records, FileRegion) else len(records)
            here = None if key is None or not size else partitions.get(key)
            if here is None:
                continue
            if replica_id < 0:
                here.counts.bytes_out += size
            else:
                here.note_sent_to_follower(replica_id, size)

    def _params(self, request: FetchRequest, exchange: Exchange) -> FetchParams:
        """Return the parameters of the read: isolation, byte limits, and the client's rack."""
        # Source: FET-4.
        version = exchange.api_version
        is_follower = request.replica_id >= 0
        if is_follower:
            isolation = Isolation.LOG_END
        elif request.isolation_level == READ_COMMITTED:
            isolation = Isolation.COMMITTED
        else:
            isolation = Isolation.HIGH_WATERMARK
        max_bytes = min(request.max_bytes, self._max_bytes)
        if not (is_follower or exchange.session.may_take_fast_path):
            max_bytes = min(max_bytes, quota_bytes_max(exchange))
        client = None
        if not is_follower and version >= FIRST_FROM_FOLLOWERS:
            client = FetchClient(request.rack_id, exchange.session.listener)
        return FetchParams(
            request.replica_id,
            request.max_wait_ms,
            min(request.min_bytes, max_bytes),
            max_bytes,
            isolation,
            is_follower or version < FIRST_FROM_FOLLOWERS,
            version <= _LAST_WITH_HARD_LIMIT,
            client,
        )

    def _session_response(
        self, context: FetchContext, fetched_partitions: FetchedPartitions, exchange: Exchange
    ) -> FetchResponse:
        """Return the response with the rows that the fetch session has to send.

        From a certain version on, rows of a partition that has moved name its current leader.
        """
        version = exchange.api_version
        leaders: CurrentLeaders | None = None
        session_response = context.answer(fetched_partitions)
        topics: list[FetchedTopic] = []
        last_topic: str | bytes = ""
        rows: list[FetchedPartition] | None = None
        for partition, fetched in session_response.partitions:
            row = fetched
            if version >= _FIRST_WITH_LEADERS and row.error_code in _WITH_LEADER:
                if leaders is None:
                    listener = exchange.session.listener
                    leaders = CurrentLeaders(self._replica_manager, self._metadata_cache, listener)
                assert partition.topic_partition is not None
                row = row._replace(current_leader=leaders.find(partition.topic_partition))
            topic, _ = partition.key
            if last_topic == NO_UUID:
                # Kafka compares names, and a topic with an unknown id has none.
                throttle_ms, session_id = exchange.throttle_ms, session_response.session_id
                return FetchResponse([], UNKNOWN_SERVER_ERROR, session_id, throttle_ms=throttle_ms)
            if rows is None or topic != last_topic:
                last_topic, rows = topic, []
                topics.append((topic, rows))
            rows.append(row)
        endpoints = () if leaders is None else leaders.endpoints
        return FetchResponse(
            topics,
            session_response.error_code,
            session_response.session_id,
            endpoints,
            exchange.throttle_ms,
        )

    def partition_row(
        self, partition: SessionPartition, result: FetchResult, records: FetchedRecords
    ) -> FetchedPartition:
        """Return the response row of one partition from the result of its read.

        `records` owns the bytes and open files of the response.
        """
        index = partition.index
        (
            error, records_read, watermark, stable_offset, log_start_offset, diverging, preferred,
        ) = result  # fmt: skip
        if error is not None:
            code = error.code
            if code == KAFKA_STORAGE_ERROR and records.api_version <= _LAST_WITHOUT_STORAGE_ERROR:
                code = NOT_LEADER_OR_FOLLOWER
            return FetchedPartition(index, code)
        aborted = None
        if records_read is not None and records_read.aborted_transactions is not None:
            aborted = [
                (transaction.producer_id, transaction.first_offset)
                for transaction in records_read.aborted_transactions
            ]
        topic_partition = partition.topic_partition
        assert topic_partition is not None
        here = self._replica_manager.partitions.get(topic_partition)
        converted_before = records.converted_count
        refused, part = (
            (0, b"")
            if records_read is None
            else records.take_part(records_read, None if here is None else here.log)
        )
        if here is not None and (more := records.converted_count - converted_before):
            here.counts.fetch_conversions += more
        if refused:
            return _refused_row(index, refused, None)
        return new_tuple(
            FetchedPartition,
            (
                index,
                0,
                watermark,
                stable_offset,
                log_start_offset,
                part,
                aborted,
                None if diverging is None else (diverging.leader_epoch, diverging.end_offset),
                None,
                NO_PREFERRED_REPLICA if preferred is None else preferred,
            ),
        )


def _opens_session_without_id(request: FetchRequest) -> bool:
    """True if the request opens a session with a topic that has no id, at which Kafka fails."""
    if request.session_epoch != INITIAL_EPOCH:
        return False
    return any(topic == NO_UUID and partitions for topic, partitions in request.topics)


def is_of_follower(request: FetchRequest, _version: int) -> bool:
    """True if a Fetch comes from a follower: metrics count it under another name."""
    return request.replica_id >= 0


def _refused_row(index: int, code: int, records: SendPart | None = b"") -> FetchedPartition:
    """Return the row of a partition that was not read; aborted transactions are empty, not null."""
    return FetchedPartition(index, code, records=records, aborted=())


def _denied_topics(partitions: Iterable[SessionPartition], session: Session) -> set[str]:
    """Return the requested topics that a client may not read.

    Each topic is checked and logged once.
    """
    if session.may_take_fast_path:
        return set()
    counts = Counter(
        partition.topic_partition.topic
        for partition in partitions
        if partition.topic_partition is not None
    )
    kind = AclResource.TOPIC
    return {
        topic
        for topic, count in counts.items()
        if not session.may(AclOperation.READ, kind, topic, Audit(count))
    }
