"""Metadata: topics, their leaders, and the addresses of brokers by the client's listener.

| requested | response |
|---|---|
| all topics (null; none in version 0) | every known topic |
| ids (from version 12 on) | those topics; others UNKNOWN_TOPIC_ID; names next to ids are ignored |
| names | known ones; others are created if that is allowed, or UNKNOWN_TOPIC_OR_PARTITION |

| of a partition | version 0 | 1 to 5 | 6 on |
|---|---|---|---|
| the leader is not up | LEADER_NOT_AVAILABLE | same | same |
| the leader lacks the listener | LEADER_NOT_AVAILABLE | same | LISTENER_NOT_FOUND |
| a replica is not up | left out, REPLICA_NOT_AVAILABLE | listed | listed |

The response that creates a topic reports it with LEADER_NOT_AVAILABLE: the client retries.
Responses are kept as bytes until the broker's metadata changes: clients repeat equal requests.

Source: KafkaApis.handleTopicMetadataRequest, ZkMetadataCache, AutoTopicCreationManager of 3.9.1;
PART-12.
Differs: before the first UpdateMetadata of a controller every topic has LEADER_NOT_AVAILABLE.
Kafka has UNKNOWN_TOPIC_OR_PARTITION, at which librdkafka drops its unsent records for a topic
that it knew: a restart of a broker must not cost a producer its records. For the same reason the
broker lists itself then, where Kafka lists no broker (`MetadataCache.brokers_to_notify`).
Topics and partitions come in the order of Kafka's hash sets and maps (`engine.hash_order`).
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, TypeAlias

from engine.api.admission import (
    CLUSTER_NAME,
    NAMED,
    UNLOGGED,
    UNLOGGED_DENIAL,
    AclOperation,
    AclResource,
    Session,
)
from engine.api.exchange import EncodedResponse, Exchange
from engine.api.promised import in_order, promised
from engine.api.response_errors import error_counts
from engine.hash_order import SMALL_MAP_MAX, in_immutable_hash_set_order
from engine.host.coroutine import PromiseCoroutine
from engine.host.promise import Promise
from engine.host.turns import LoopTurns, Share
from engine.kafka_errors import (
    INVALID_REQUEST,
    INVALID_TOPIC_EXCEPTION,
    LEADER_NOT_AVAILABLE,
    LISTENER_NOT_FOUND,
    NONE,
    REPLICA_NOT_AVAILABLE,
    REQUEST_TIMED_OUT,
    TOPIC_ALREADY_EXISTS,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from engine.limits import (
    METADATA_ANSWERS_KEPT,
    METADATA_ANSWERS_KEPT_BYTES,
    METADATA_RESTARTS_MAX,
    METADATA_TOPICS_AT_ONCE,
    ROWS_PER_SHARE,
)
from engine.naming import INTERNAL_TOPICS, InvalidTopicName, validate_topic
from engine.replication.metadata_cache import MetadataCache, PartitionMetadata
from engine.wire import messages
from engine.wire.codec import message_codec
from engine.wire.layout import NO_UUID
from engine.wire.row_bytes import encode_rows, insert_rows

#: All operations on a topic, and on the cluster, where there is no authorizer: one bit
#: for each operation that there is. Source: AclEntry.supportedOperations.
ALL_TOPIC_OPERATIONS = sum(1 << operation for operation in (3, 4, 5, 6, 7, 8, 10, 11))
ALL_CLUSTER_OPERATIONS = sum(1 << operation for operation in (5, 7, 8, 9, 10, 11, 12))

_NO_BROKER = -1
_BY_ID_VERSION = 12
_IS_MADE = frozenset((NONE, TOPIC_ALREADY_EXISTS, REQUEST_TIMED_OUT))

_Topic: TypeAlias = "messages.MetadataResponse.MetadataResponseTopic"
_Response: TypeAlias = "messages.MetadataResponse | EncodedResponse"

#: Creates topics and returns the error code of each.
AutoCreate: TypeAlias = Callable[[list[str]], PromiseCoroutine[dict[str, int]]]


class _ResponseKey(NamedTuple):
    """The fields of a request that its response depends on, in addition to the metadata."""

    version: int
    listener: str
    #: None for all topics.
    names: tuple[str, ...] | None
    ids: tuple[bytes, ...]
    may_create: bool
    with_topic_operations: bool
    with_cluster_operations: bool
    #: The session, if ACLs can hide something from it; None otherwise: those responses are equal.
    session: Session | None


class Metadata:
    """Answers Metadata; `auto_create` is None if auto.create.topics.enable is off.

    Responses are cached for clients to whom nothing can be denied: they depend only on the
    listener.
    """

    def __init__(
        self,
        metadata_cache: MetadataCache,
        turns: LoopTurns,
        auto_create: AutoCreate | None = None,
    ) -> None:
        """Create with an empty cache of responses; large responses are built in several turns.

        `auto_create` creates missing topics (auto.create.topics.enable); None: they are not
        created.
        """
        self._turns = turns
        #: Responses that are being built; equal requests meanwhile share them.
        self._in_progress: dict[_ResponseKey, Promise[_Response]] = {}
        self._metadata_cache = metadata_cache
        self._auto_create = auto_create
        #: Encoded responses of metadata version `_answers_version`, bounded in number and bytes.
        self._answers: dict[_ResponseKey, EncodedResponse] = {}
        self._answers_bytes = 0
        self._answers_version = -1

    def handle(
        self, request: messages.MetadataRequest, exchange: Exchange
    ) -> _Response | Promise[_Response] | Promise[messages.MetadataResponse]:
        """Return the response; promise it if topics must be created, or there are many topics."""
        topics = request.topics
        version = exchange.api_version
        if topics is None or (version == 0 and not topics):
            names: tuple[str, ...] | None = None
            ids: tuple[bytes, ...] = ()
        else:
            code = _refusal_code(topics, version)
            if code != NONE:
                return self._refusal(topics, code)
            # Without duplicates, so that repetitions do not enlarge the cached key.
            ids = tuple(dict.fromkeys(t.topic_id for t in topics if t.topic_id != NO_UUID))
            named = (topic.name for topic in topics if topic.name is not None)
            names = () if ids else tuple(dict.fromkeys(named))
        key = _ResponseKey(
            version,
            exchange.session.listener,
            names,
            ids,
            self._auto_create is not None and request.allow_auto_topic_creation,
            request.include_topic_authorized_operations,
            request.include_cluster_authorized_operations,
            None if exchange.session.may_take_fast_path else exchange.session,
        )
        kept = self._find_cached(key)
        if kept is not None:
            return kept
        requested = len(self._metadata_cache.topics) if names is None else len(names or ids)
        return (
            self._answer(key) if requested <= METADATA_TOPICS_AT_ONCE else self._answer_large(key)
        )

    # Answers that are made in several turns

    def _answer_large(
        self, key: _ResponseKey
    ) -> _Response | Promise[_Response] | Promise[messages.MetadataResponse]:
        """Serve a request for many topics in turns of the event loop.

        Equal requests share the work. With topic ids, or with a name that does not exist, it is
        served in one turn.
        """
        if key.ids or self._lacks_a_name(key):
            return self._answer(key)
        work = self._in_progress.get(key)
        if work is None:
            work = promised(self._answer_in_turns(key))
            if not work.is_kept:
                self._in_progress[key] = work

                def done() -> None:
                    del self._in_progress[key]

                work.watch(done)
        # Each waiting request has its promise.
        return in_order(work.then(lambda response: response))

    async def _answer_in_turns(self, key: _ResponseKey) -> _Response:
        """Build a response in several turns, all from one version of the metadata.

        Returns it encoded. If the metadata keeps changing, or a topic is deleted, it is built in
        one turn.
        """
        share = self._turns.begin()
        for _ in range(METADATA_RESTARTS_MAX):
            response = await self._build_at_one_version(key, share)
            if response is not None:
                return response
            if self._lacks_a_name(key):
                # A named topic was deleted between two turns.
                break
        answer = self._answer(key)
        return await answer if isinstance(answer, Promise) else answer

    def _lacks_a_name(self, key: _ResponseKey) -> bool:
        """True if a requested topic name does not exist: the topic may have to be created."""
        known = self._metadata_cache.topics
        return any(name not in known for name in key.names or ())

    async def _build_at_one_version(self, key: _ResponseKey, share: Share) -> _Response | None:
        """Build a response in several turns; None if the metadata has changed meanwhile."""
        version = self._metadata_cache.version
        names, hidden = self._visible_names(key)
        response = self._response(key, [])
        parts: list[bytes] = []
        errors: Counter[int] = Counter()
        rows = len(names) + len(hidden)
        visible = (self._topic_row(name, key) for name in self._in_order(names, key))
        while True:
            if share.is_over():
                await share.next()
                if self._metadata_cache.version != version:
                    return None
            some = list(islice(visible, ROWS_PER_SHARE)) or hidden
            if not some:
                break
            hidden = [] if some is hidden else hidden
            part = copy.copy(response)
            part.topics = some
            parts.append(encode_rows("Metadata", key.version, part, "topics"))
            errors.update(error_counts("Metadata", part))
        body = insert_rows("Metadata", key.version, response, "topics", rows, parts)
        return self._cache_bytes(key, EncodedResponse([b"".join(body)], None, errors))

    def _refusal(
        self, topics: Iterable[messages.MetadataRequest.MetadataRequestTopic], code: int
    ) -> messages.MetadataResponse:
        """Return a response with the same error code for each requested topic, without brokers."""
        row = messages.MetadataResponse.MetadataResponseTopic
        refused = [
            row(error_code=code, name=topic.name or "", topic_id=topic.topic_id) for topic in topics
        ]
        return messages.MetadataResponse(topics=refused)

    # Answers that are kept

    def _find_cached(self, key: _ResponseKey) -> EncodedResponse | None:
        """Return the cached response for a request, or None; new metadata first clears the cache.

        A response that depends on the client's ACLs is never cached.
        """
        if key.session is not None:
            return None
        if self._answers_version != self._metadata_cache.version:
            self._answers.clear()
            self._answers_bytes = 0
            self._answers_version = self._metadata_cache.version
        return self._answers.get(key)

    def _cache(self, key: _ResponseKey, response: messages.MetadataResponse) -> _Response:
        """Encode and cache a response; leave it unencoded if it depends on the client's ACLs."""
        if key.session is not None:
            return response
        body = message_codec("MetadataResponse", key.version).encode(response)
        encoded = EncodedResponse([body], None, error_counts("Metadata", response))
        return self._cache_bytes(key, encoded)

    def _cache_bytes(self, key: _ResponseKey, encoded: EncodedResponse) -> EncodedResponse:
        """Cache an encoded response within the limits of number and bytes, and return it.

        A response that depends on the client's ACLs is not cached.
        """
        if key.session is not None:
            return encoded
        size_bytes = sum(map(len, encoded.parts))
        if (
            len(self._answers) >= METADATA_ANSWERS_KEPT
            or self._answers_bytes + size_bytes > METADATA_ANSWERS_KEPT_BYTES
        ):
            self._answers.clear()
            self._answers_bytes = 0
        if size_bytes <= METADATA_ANSWERS_KEPT_BYTES:
            self._answers[key] = encoded
            self._answers_bytes += size_bytes
        return encoded

    # Answers that are made

    def _answer(self, key: _ResponseKey) -> _Response | Promise[messages.MetadataResponse]:
        """Build the response in one turn; a promise of it if topics must be created first."""
        known_topics = self._metadata_cache.topics
        rows = [self._unknown_id_row(topic_id) for topic_id in key.ids if self._lacks(topic_id)]
        names, hidden = self._visible_names(key)
        names = list(self._in_order(names, key))
        rows += [self._topic_row(name, key) for name in names if name in known_topics]
        missing = [name for name in names if name not in known_topics]
        if key.may_create and key.session is not None:
            session = key.session
            denied = session.topics_not_creatable(missing) if missing else []
            hidden = [
                self._denied_row(name, is_internal=name in INTERNAL_TOPICS) for name in denied
            ] + hidden
            missing = [name for name in missing if name not in denied]
        if not (missing and key.may_create):
            rows += [
                self._row_without_partitions(name, self._error_of(name), key) for name in missing
            ]
            return self._cache(key, self._response(key, rows + hidden))
        return self._create_missing(key, rows, missing, hidden)

    def _create_missing(
        self, key: _ResponseKey, rows: list[_Topic], missing: list[str], hidden: list[_Topic]
    ) -> Promise[messages.MetadataResponse]:
        """Create the missing topics; promise the response with their rows, and `hidden` last."""
        wanted = [n for n in missing if self._error_of(n) == UNKNOWN_TOPIC_OR_PARTITION]

        auto_create = self._auto_create
        assert auto_create is not None

        async def create_and_respond() -> messages.MetadataResponse:
            """Create the topics; rows of created ones have LEADER_NOT_AVAILABLE: clients retry."""
            codes = await auto_create(wanted) if wanted else {}
            for name in missing:
                code = codes.get(name, self._error_of(name))
                made = LEADER_NOT_AVAILABLE if code in _IS_MADE else code
                rows.append(self._row_without_partitions(name, made, key))
            return self._response(key, rows + hidden)

        return promised(create_and_respond())

    def _requested_names(self, key: _ResponseKey) -> list[str]:
        """Return the requested topic names: all, those of the known ids, or those named."""
        if key.names is None:
            return list(self._metadata_cache.topics)
        by_id = (self._metadata_cache.topic_name(topic_id) for topic_id in key.ids)
        return [name for name in by_id if name is not None] or list(key.names)

    def _in_order(self, names: list[str], key: _ResponseKey) -> Iterator[str]:
        """Yield visible topic names in the order of the Scala set that Kafka iterates."""
        # A large set stays one of its kind without the topics that are not visible, but for that of
        # all topics, which is a view of a map.
        count = len(names if key.names is None else key.ids or key.names)
        return iter(names) if count <= SMALL_MAP_MAX else in_immutable_hash_set_order(names)

    def _visible_names(self, key: _ResponseKey) -> tuple[list[str], list[_Topic]]:
        """Return the topics that the client may see, and error rows for denied topics it named.

        An id is not secret, a name is: the row of a denied id has no name.
        """
        names, session = self._requested_names(key), key.session
        if session is None:
            return names, []
        audit = UNLOGGED_DENIAL if key.names is None else NAMED
        kind = AclResource.TOPIC
        denied = [n for n in names if not session.may(AclOperation.DESCRIBE, kind, n, audit)]
        names = [name for name in names if name not in denied]
        if key.names is None:
            return names, []
        ids = self._metadata_cache.topic_ids
        if key.ids:
            return names, [self._denied_row(None, ids.get(name, NO_UUID)) for name in denied]
        return names, [self._denied_row(name) for name in denied]

    def _denied_row(
        self, name: str | None, topic_id: bytes = NO_UUID, *, is_internal: bool = False
    ) -> _Topic:
        """Return a TOPIC_AUTHORIZATION_FAILED row; `name` is None for a request by id."""
        return messages.MetadataResponse.MetadataResponseTopic(
            error_code=TOPIC_AUTHORIZATION_FAILED,
            name=name,
            topic_id=topic_id,
            is_internal=is_internal,
        )

    def _lacks(self, topic_id: bytes) -> bool:
        """True if no topic has the topic id."""
        return self._metadata_cache.topic_name(topic_id) is None

    def _unknown_id_row(self, topic_id: bytes) -> _Topic:
        """Return the row of a requested topic id that no topic has."""
        return messages.MetadataResponse.MetadataResponseTopic(
            error_code=UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id
        )

    def _error_of(self, name: str) -> int:
        """Return the error code for a topic name that the metadata cache lacks.

        It is LEADER_NOT_AVAILABLE before the cache has a controller: the topic may exist.
        """
        try:
            validate_topic(name)
        except InvalidTopicName:
            return INVALID_TOPIC_EXCEPTION
        if self._metadata_cache.controller_id is None:
            return LEADER_NOT_AVAILABLE
        return UNKNOWN_TOPIC_OR_PARTITION

    def _row_without_partitions(self, name: str, code: int, key: _ResponseKey) -> _Topic:
        """Return a topic's row without id and partitions; with operations if requested."""
        topic = messages.MetadataResponse.MetadataResponseTopic(
            error_code=code, name=name, is_internal=name in INTERNAL_TOPICS
        )
        if key.with_topic_operations:
            topic.topic_authorized_operations = _permitted_operations(
                key.session, AclResource.TOPIC, name, ALL_TOPIC_OPERATIONS
            )
        return topic

    def _topic_row(self, name: str, key: _ResponseKey) -> _Topic:
        """Return the row of a topic in the metadata cache; raise KeyError if absent."""
        topic = self._row_without_partitions(name, NONE, key)
        topic.topic_id = self._metadata_cache.topic_ids.get(name, NO_UUID)
        partitions = self._metadata_cache.topics[name]
        topic.partitions = [
            self._partition_row(index, partitions[index], key)
            for index in self._metadata_cache.partition_order(name)
        ]
        return topic

    def _partition_row(
        self, index: int, metadata: PartitionMetadata, key: _ResponseKey
    ) -> messages.MetadataResponse.MetadataResponsePartition:
        """Return the row of one partition; without a reachable leader it has an error code."""
        replicas, isr = list(metadata.replicas), list(metadata.isr)
        if key.version == 0:
            replicas = [r for r in replicas if self._is_reached(r, key.listener)]
            isr = [r for r in isr if self._is_reached(r, key.listener)]
        leader_id, error = metadata.leader_id, NONE
        if not self._is_reached(leader_id, key.listener):
            lacks_listener = key.version >= 6 and self._metadata_cache.is_alive(leader_id)
            error = LISTENER_NOT_FOUND if lacks_listener else LEADER_NOT_AVAILABLE
            leader_id = _NO_BROKER
        elif len(replicas) < len(metadata.replicas) or len(isr) < len(metadata.isr):
            error = REPLICA_NOT_AVAILABLE
        return messages.MetadataResponse.MetadataResponsePartition(
            error_code=error,
            partition_index=index,
            leader_id=leader_id,
            leader_epoch=metadata.leader_epoch,
            replica_nodes=replicas,
            isr_nodes=isr,
            offline_replicas=list(metadata.offline_replicas),
        )

    def _is_reached(self, broker_id: int, listener: str) -> bool:
        """True if a live broker has an endpoint at the client's listener."""
        broker = self._metadata_cache.brokers.get(broker_id)
        return broker is not None and broker.endpoint(listener) is not None

    def _response(self, key: _ResponseKey, topics: list[_Topic]) -> messages.MetadataResponse:
        """Return the response: brokers with the client's listener, the controller, the topics."""
        cache = self._metadata_cache
        brokers = []
        for broker in cache.brokers_to_notify():
            endpoint = broker.endpoint(key.listener)
            if endpoint is not None:
                node = messages.MetadataResponse.MetadataResponseBroker(
                    node_id=broker.broker_id,
                    host=endpoint.host,
                    port=endpoint.port,
                    rack=broker.rack,
                )
                brokers.append(node)
        response = messages.MetadataResponse(
            brokers=brokers,
            cluster_id=cache.cluster_id,
            controller_id=_NO_BROKER if cache.controller_id is None else cache.controller_id,
            topics=topics,
        )
        if key.with_cluster_operations:
            response.cluster_authorized_operations = _permitted_operations(
                key.session, AclResource.CLUSTER, CLUSTER_NAME, ALL_CLUSTER_OPERATIONS
            )
        return response


def _permitted_operations(
    session: Session | None, kind: AclResource, name: str, operations: int
) -> int:
    """Return the bit set of operations that a client may perform on a resource.

    0 without DESCRIBE; all `operations` for a client to whom nothing is denied (`session` None).
    """
    if session is None:
        return operations
    audit = NAMED if kind is AclResource.CLUSTER else UNLOGGED
    if not session.may(AclOperation.DESCRIBE, kind, name, audit):
        return 0
    return session.operations_on(kind, name, operations)


def _refusal_code(
    topics: Sequence[messages.MetadataRequest.MetadataRequestTopic], version: int
) -> int:
    """Return the error code that refuses a request's topics in its version, else NONE.

    Ids need version 12. From there on a topic without name and id fails the request unless another
    topic has an id.
    """
    has_ids = any(topic.topic_id != NO_UUID for topic in topics)
    has_nameless = any(topic.name is None and topic.topic_id == NO_UUID for topic in topics)
    if version < _BY_ID_VERSION:
        return INVALID_REQUEST if has_ids or has_nameless else NONE
    return UNKNOWN_SERVER_ERROR if has_nameless and not has_ids else NONE
