"""FindCoordinator: which broker coordinates a group or a transactional id.

| versions | requested | response |
|---|---|---|
| 0 | one group | code and node |
| 1 to 3 | one key of a type | the same with a message |
| 4 on | keys of a type | a list of codes and nodes |

| type | |
|---|---|
| 0 group | the leader of its partition of `__consumer_offsets`, created when first needed |
| 1 transaction | the leader of its partition of `__transaction_state`, in the same way |
| 2 share group | COORDINATOR_NOT_AVAILABLE from version 6 on, INVALID_REQUEST before |
| others | INVALID_REQUEST |

While the topic is being created, and while its partition has no leader, the response is
COORDINATOR_NOT_AVAILABLE.

Source: KafkaApis.handleFindCoordinatorRequest of 3.9.1; GRP-19.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

from engine.api.admission import AclOperation, AclResource, NotAuthorized, Session
from engine.api.exchange import Exchange
from engine.host.coroutine import PromiseCoroutine, drive
from engine.kafka_errors import (
    COORDINATOR_NOT_AVAILABLE,
    GROUP_AUTHORIZATION_FAILED,
    INVALID_REQUEST,
    INVALID_REQUEST_DETAIL,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)
from engine.model import TopicPartition
from engine.naming import CONSUMER_OFFSETS, TRANSACTION_STATE
from engine.replication.metadata_cache import MetadataCache
from engine.wire import messages

_GROUP, _TRANSACTION, _SHARE = 0, 1, 2
_SHARE_VERSION = 6
_LIST_VERSION = 4
_NO_NODE = -1
_MESSAGES = {
    0: "NONE",
    COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    INVALID_REQUEST: INVALID_REQUEST_DETAIL,
    GROUP_AUTHORIZATION_FAILED: NotAuthorized(AclResource.GROUP).detail,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED: NotAuthorized(AclResource.TRANSACTIONAL_ID).detail,
}
_RESOURCES = {_GROUP: AclResource.GROUP, _TRANSACTION: AclResource.TRANSACTIONAL_ID}

#: Creates topics; returns an error code for each.
CreateTopics: TypeAlias = Callable[[Iterable[str]], PromiseCoroutine[dict[str, int]]]


class Coordinator(NamedTuple):
    """The broker that coordinates a key, or an error code."""

    error_code: int
    node_id: int = _NO_NODE
    host: str = ""
    port: int = _NO_NODE


class FindCoordinator:
    """Answers FindCoordinator from the metadata cache."""

    def __init__(
        self,
        metadata_cache: MetadataCache,
        partition_of_group: Callable[[str], int],
        partition_of_transaction: Callable[[str], int],
        create_topics: CreateTopics,
    ) -> None:
        """Create the handler of FindCoordinator.

        Each function returns the partition of a group or a transactional id.
        """
        self._metadata_cache = metadata_cache
        #: By key type, the coordinators' topic and the function from a key to its partition.
        self._topics = {
            _GROUP: (CONSUMER_OFFSETS, partition_of_group),
            _TRANSACTION: (TRANSACTION_STATE, partition_of_transaction),
        }
        self._create_topics = create_topics

    def handle(
        self, request: messages.FindCoordinatorRequest, exchange: Exchange
    ) -> messages.FindCoordinatorResponse:
        """Return the coordinator of each key, in the form of the request's version."""
        version, kind, session = exchange.api_version, request.key_type, exchange.session
        if version < _LIST_VERSION:
            found = self._find(kind, request.key, version, session)
            return messages.FindCoordinatorResponse(
                error_code=found.error_code,
                error_message=_MESSAGES[found.error_code],
                node_id=found.node_id,
                host=found.host,
                port=found.port,
            )
        row = messages.FindCoordinatorResponse.Coordinator
        rows = []
        for key in request.coordinator_keys:
            code, node_id, host, port = self._find(kind, key, version, session)
            named = row(key=key, error_code=code, node_id=node_id, host=host, port=port)
            if code == INVALID_REQUEST:
                # Kafka sets a message for INVALID_REQUEST only.
                named.error_message = "" if kind == _SHARE else _MESSAGES[code]
            rows.append(named)
        return messages.FindCoordinatorResponse(coordinators=rows)

    def _find(self, key_type: int, key: str, version: int, session: Session) -> Coordinator:
        """Return the coordinator of one key, or the error code for which there is none.

        The client must be allowed to DESCRIBE the group or transactional id.
        """
        resource = _RESOURCES.get(key_type)
        if resource is not None and not session.may(AclOperation.DESCRIBE, resource, key):
            return Coordinator(NotAuthorized(resource).code)
        if key_type in self._topics:
            topic, partition_of = self._topics[key_type]
            return self._leader_of(topic, partition_of, key, session.listener)
        if key_type == _SHARE and version >= _SHARE_VERSION:
            return Coordinator(COORDINATOR_NOT_AVAILABLE)
        return Coordinator(INVALID_REQUEST)

    def _leader_of(
        self, topic: str, partition_of: Callable[[str], int], key: str, listener: str
    ) -> Coordinator:
        """Return the coordinator: the leader of the key's partition in the topic of its key type.

        COORDINATOR_NOT_AVAILABLE, at which clients retry, if the topic or its leader does not exist
        yet; the creation of a missing topic is begun.
        """
        cache = self._metadata_cache
        if topic not in cache.topics:
            # Created in the background: clients retry.
            drive(self._create_topics((topic,)))
            return Coordinator(COORDINATOR_NOT_AVAILABLE)
        partition = cache.partition(TopicPartition(topic, partition_of(key)))
        leader = None if partition is None else cache.brokers.get(partition.leader_id)
        endpoint = None if leader is None else leader.endpoint(listener)
        if leader is None or endpoint is None:
            return Coordinator(COORDINATOR_NOT_AVAILABLE)
        return Coordinator(0, leader.broker_id, endpoint.host, endpoint.port)
