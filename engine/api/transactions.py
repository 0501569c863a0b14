"""AddPartitionsToTxn (24), AddOffsetsToTxn (25), EndTxn (26): a producer and its transaction.

| API | versions | difference |
|---|---|---|
| AddPartitionsToTxn | 0 … 3 | one transaction, from its producer |
| | 4 on | several, from brokers: add, or only verify |
| all | below 2 | INVALID_PRODUCER_EPOCH in place of PRODUCER_FENCED |

A partition that may not be written, or is not known, fails the whole of its transaction's request:
the others are answered OPERATION_NOT_ATTEMPTED.

Source: KafkaApis.handleAddPartitionsToTxnRequest, handleAddOffsetsToTxnRequest,
handleEndTxnRequest of 3.9.1; KIP-890.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from functools import partial
from typing import NamedTuple, TypeAlias

from engine.api.admission import AclOperation, AclResource, Audit, Session
from engine.api.exchange import Exchange
from engine.api.promised import when_all
from engine.hash_order import in_java_hash_order, partitions_in_immutable_order
from engine.host.promise import Promise
from engine.kafka_errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    GROUP_AUTHORIZATION_FAILED,
    INVALID_PRODUCER_EPOCH,
    INVALID_TXN_STATE,
    OPERATION_NOT_ATTEMPTED,
    PRODUCER_FENCED,
    TOPIC_AUTHORIZATION_FAILED,
    TRANSACTION_ABORTABLE,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from engine.model import TopicPartition
from engine.naming import CONSUMER_OFFSETS, INTERNAL_TOPICS
from engine.replication.metadata_cache import MetadataCache
from engine.transactions.coordinator import TransactionCoordinator
from engine.transactions.ports import TransactionOwner
from engine.wire import messages
from engine.wire.scala_set import scala_order

_FIRST_WITH_FENCED = 2
_FIRST_OF_BROKERS = 4
_FIRST_WITH_ABORTABLE = 5

_Topic: TypeAlias = "messages.AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult"
_Codes = dict[TopicPartition, int]
_Request = messages.AddPartitionsToTxnRequest
_Response = messages.AddPartitionsToTxnResponse


class _Producer(NamedTuple):
    transactional_id: str
    producer_id: int
    producer_epoch: int


def is_verification(request: _Request, version: int) -> bool:
    """True if a broker's AddPartitionsToTxn only verifies partitions.

    Metrics count it by another name.

    Source: AddPartitionsToTxnRequest.allVerifyOnlyRequest.
    """
    return version >= _FIRST_OF_BROKERS and all(each.verify_only for each in request.transactions)


class Transactions:
    """Answers AddPartitionsToTxn, AddOffsetsToTxn and EndTxn."""

    def __init__(
        self,
        coordinator: TransactionCoordinator,
        metadata_cache: MetadataCache,
        partition_of_group: Callable[[str], int],
    ) -> None:
        """Create the handlers of the requests about transactions.

        `partition_of_group` returns a group's partition of `__consumer_offsets`.
        """
        self._coordinator = coordinator
        self._metadata_cache = metadata_cache
        self._partition_of_group = partition_of_group

    def add_partitions(
        self, request: _Request, exchange: Exchange
    ) -> _Response | Promise[_Response]:
        """Add partitions to transactions, or verify them; promise an error code for each partition.

        From a client it is one transaction; from a broker (version 4 on) it may be several.
        """
        version, session = exchange.api_version, exchange.session
        if version < _FIRST_OF_BROKERS:
            producer = _Producer(
                request.v3_and_below_transactional_id,
                request.v3_and_below_producer_id,
                request.v3_and_below_producer_epoch,
            )
            return self._add_partitions_of(producer, request.v3_and_below_topics, exchange).then(
                lambda topics: _Response(results_by_topic_v3_and_below=topics)
            )
        if not session.may_on_cluster(AclOperation.CLUSTER_ACTION):
            return _Response(error_code=CLUSTER_AUTHORIZATION_FAILED)
        added = [
            self._add_partitions_of(
                _Producer(row.transactional_id, row.producer_id, row.producer_epoch),
                row.topics,
                exchange,
                is_verified_only=row.verify_only,
            )
            for row in request.transactions
        ]
        return when_all(added, partial(_batched_response, request))

    def _add_partitions_of(
        self,
        producer: _Producer,
        topics: Sequence[_Request.AddPartitionsToTxnTopic],
        exchange: Exchange,
        *,
        is_verified_only: bool = False,
    ) -> Promise[list[_Topic]]:
        """Add partitions to one transaction, or only verify them; promise a code for each.

        They are in the request's order, except if partitions are refused or only verified: Kafka
        puts these and their topics into maps, and omits topics without partitions. Differs: up to
        four partitions that are only verified have the order of the request. In Kafka their order
        varies between runs.
        """
        version = exchange.api_version
        partitions = [
            TopicPartition(topic.name, index) for topic in topics for index in topic.partitions
        ]
        is_client = version < _FIRST_OF_BROKERS
        if is_client and not _may_write_as(exchange.session, producer.transactional_id):
            return Promise.of(_rows_with_code(topics, TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
        denied = self._denied_topics(partitions, exchange.session) if is_client else set()
        codes = self._refusal_codes(partitions, denied)
        if codes:
            return Promise.of(_topic_rows({key: codes[key] for key in scala_order([list(codes)])}))
        if is_verified_only:
            verified = self._coordinator.partitions.verify_partitions(*producer, partitions)
            ordered = partitions_in_immutable_order(verified)
            codes = {key: _code_by_version(verified[key], version) for key in ordered}
            return Promise.of(_topic_rows(codes))
        added = self._coordinator.partitions.add_partitions(*producer, partitions)
        return added.then(lambda code: _rows_with_code(topics, _code_by_version(code, version)))

    def verify_local(
        self, owners: Sequence[TransactionOwner], _exchange: Exchange
    ) -> Promise[dict[str, _Codes]]:
        """Verify partitions for a broker of this process; promises codes by transactional id."""
        return Promise.of(
            {owner.transactional_id: self._verify_partitions(owner) for owner in owners}
        )

    def _verify_partitions(self, owner: TransactionOwner) -> _Codes:
        """Return for each partition NONE if it is in the owner's transaction, else an error code.

        Nothing is added. The coordinator is called only if all partitions exist.
        """
        refused = self._refusal_codes(owner.partitions, frozenset())
        return refused or self._coordinator.partitions.verify_partitions(*owner)

    def _denied_topics(self, partitions: Sequence[TopicPartition], session: Session) -> set[str]:
        """Return the topics that a client may not write to.

        Each topic is checked and logged once.
        """
        counts: dict[str, int] = {}
        for topic, _ in partitions:
            counts[topic] = counts.get(topic, 0) + 1
        return {topic for topic in counts if not _may_write(session, topic, counts[topic])}

    def _refusal_codes(self, partitions: Sequence[TopicPartition], denied: Set[str]) -> _Codes:
        """Return the codes of all partitions if one is denied or unknown; empty if none is.

        One such partition refuses the request: its other partitions get OPERATION_NOT_ATTEMPTED.
        """
        failed: _Codes = {}
        for partition in partitions:
            if partition.topic in denied:
                failed[partition] = TOPIC_AUTHORIZATION_FAILED
            elif not self._metadata_cache.is_known(partition):
                failed[partition] = UNKNOWN_TOPIC_OR_PARTITION
        if not failed:
            return {}
        return {key: failed.get(key, OPERATION_NOT_ATTEMPTED) for key in partitions}

    def add_offsets(
        self, request: messages.AddOffsetsToTxnRequest, exchange: Exchange
    ) -> messages.AddOffsetsToTxnResponse | Promise[messages.AddOffsetsToTxnResponse]:
        """Add a group's partition of `__consumer_offsets` to a transaction.

        Promises the error code.
        """
        session, group_id = exchange.session, request.group_id
        response = messages.AddOffsetsToTxnResponse
        if not _may_write_as(session, request.transactional_id):
            return response(error_code=TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        if not session.may(AclOperation.READ, AclResource.GROUP, group_id):
            return response(error_code=GROUP_AUTHORIZATION_FAILED)
        partition = TopicPartition(CONSUMER_OFFSETS, self._partition_of_group(group_id))
        added = self._coordinator.partitions.add_partitions(
            request.transactional_id, request.producer_id, request.producer_epoch, [partition]
        )
        return added.then(
            lambda code: response(error_code=_code_by_version(code, exchange.api_version))
        )

    def end(
        self, request: messages.EndTxnRequest, exchange: Exchange
    ) -> messages.EndTxnResponse | Promise[messages.EndTxnResponse]:
        """Commit or abort a transaction by EndTxn; promise the error code."""
        response = messages.EndTxnResponse
        if not _may_write_as(exchange.session, request.transactional_id):
            return response(error_code=TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        ended = self._coordinator.ends.end_transaction(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            is_commit=request.committed,
        )
        return ended.then(
            lambda code: response(error_code=_code_by_version(code, exchange.api_version))
        )


def _batched_response(request: _Request, added: list[list[_Topic]]) -> _Response:
    """Return the response to a broker's batched request: a result for each transaction."""
    result = _Response.AddPartitionsToTxnResult
    return _Response(
        results_by_transaction=[
            result(transactional_id=transaction.transactional_id, topic_results=topics)
            for transaction, topics in zip(request.transactions, added, strict=True)
        ]
    )


def _may_write_as(session: Session, transactional_id: str) -> bool:
    """Return True if ACLs allow the client to WRITE with a transactional id."""
    return session.may(AclOperation.WRITE, AclResource.TRANSACTIONAL_ID, transactional_id)


def _may_write(session: Session, topic: str, count: int) -> bool:
    """Return True if the client may write to the topic; False for internal topics."""
    # Only coordinators write to internal topics.
    return topic not in INTERNAL_TOPICS and session.may(
        AclOperation.WRITE, AclResource.TOPIC, topic, Audit(count)
    )


def _code_by_version(code: int, version: int) -> int:
    """Return the error code, or an older one in place of a code that the version does not have."""
    if code == PRODUCER_FENCED and version < _FIRST_WITH_FENCED:
        return INVALID_PRODUCER_EPOCH
    if code == TRANSACTION_ABORTABLE and version < _FIRST_WITH_ABORTABLE:
        return INVALID_TXN_STATE
    return code


def _rows_with_code(topics: Sequence[_Request.AddPartitionsToTxnTopic], code: int) -> list[_Topic]:
    """Return a row for each requested topic, with the same code for all its partitions.

    Source: AddPartitionsToTxnRequest.errorResponseForTransaction.
    """
    return [
        _topic_row(topic.name, [_partition_row(index, code) for index in topic.partitions])
        for topic in topics
    ]


def _topic_rows(codes: _Codes) -> list[_Topic]:
    """Return the rows of topics with the code of each partition, in the order of Java's hash map.

    Source: AddPartitionsToTxnResponse.
    """
    rows: dict[str, list[_Response.AddPartitionsToTxnPartitionResult]] = {}
    for key, code in codes.items():
        rows.setdefault(key.topic, []).append(_partition_row(key.partition, code))
    return [_topic_row(name, rows[name]) for name in in_java_hash_order(rows)]


def _partition_row(index: int, code: int) -> _Response.AddPartitionsToTxnPartitionResult:
    """Return the response row of a partition with an error code."""
    return _Response.AddPartitionsToTxnPartitionResult(
        partition_index=index, partition_error_code=code
    )


def _topic_row(name: str, rows: list[_Response.AddPartitionsToTxnPartitionResult]) -> _Topic:
    """Return the response row of a topic with the rows of its partitions."""
    return _Response.AddPartitionsToTxnTopicResult(name=name, results_by_partition=rows)
