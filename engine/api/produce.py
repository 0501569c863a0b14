"""Produce (0): records of producers, appended and answered when `acks` says.

```
acks  0   appended, no response; an error ends the connection, for the client knows no other sign
      1   answered after the leader's own append
     -1   answered when the in-sync replicas have it, or the request's timeout is over
```

| versions | difference |
|---|---|
| 0, 1, 2 | messages of magic 0 and 1, written anew as one batch |
| 3 | one batch of magic 2 per partition |
| 5 | + log start in the response |
| 7 | zstd is allowed |
| 8 | + which records were refused |
| 10 | + who leads instead (KIP-951) |

Transactional records are refused as those of an unknown producer: there is no coordinator yet that
could know one.
Source: KafkaApis.handleProduceRequest, ReplicaManager.appendToLocalLog; PUR-10.
"""

from __future__ import annotations

from collections.abc import Container
from typing import TypeAlias

from engine.api.admission import AclOperation, AclResource, NotAuthorized
from engine.api.exchange import CloseConnection, Exchange, Handled
from engine.api.produce_leaders import CurrentLeaders
from engine.api.produce_records import (
    TransactionalIdRefused,
    is_usual,
    judged,
)
from engine.errors import ApiError
from engine.host.promise import Promise
from engine.kafka_errors import NOT_LEADER_OR_FOLLOWER
from engine.log.validation import CorruptMessage, NoBatch, RecordsRefused
from engine.model import TopicPartition, new_tuple
from engine.replication.delayed_produce import ProduceResult
from engine.replication.errors import UnknownTopicOrPartition
from engine.replication.metadata_cache import MetadataCache
from engine.replication.replica_manager import ReplicaManager
from engine.wire.produce_bytes import (
    ProducedPartition,
    ProduceRequest,
    encode_produce_response,
    encode_produce_response_usual,
)

Results: TypeAlias = dict[TopicPartition, ProduceResult]

#: The client id by which Kafka's own admin tools write to internal topics.
ADMIN_CLIENT_ID = "__admin_client"
_FIRST_WITH_BATCHES = 3
_FIRST_WITH_LOG_START = 5
_FIRST_WITH_LEADERS = 10
_NO_PARTITIONS: Container[int] = ()


class Produce:
    """Answers Produce; takes requests as `decode_produce_request` reads them."""

    def __init__(self, replica_manager: ReplicaManager, metadata_cache: MetadataCache) -> None:
        self.replica_manager = replica_manager
        self._metadata_cache = metadata_cache

    def handle(self, request: ProduceRequest, exchange: Exchange) -> Handled:
        """Append and return the response, a promise of it, or None for acks=0.

        Nothing of the request is kept: its records lie in a buffer that the next frame fills.
        """
        response = self.answer_usual(request, exchange)
        return self.answer(request, exchange) if response is None else response

    def answer_usual(self, request: ProduceRequest, exchange: Exchange) -> bytes | None:
        """Append one batch to the only partition and return the response, without a wait.

        None when the request wants something else or may have to wait, or something can be denied
        to the client; nothing has been done then.
        """
        topics = request.topics
        if len(topics) != 1:
            return None
        ((topic, partitions),) = topics
        if len(partitions) != 1:
            return None
        ((index, records),) = partitions
        version = exchange.api_version
        if (
            version < _FIRST_WITH_LOG_START
            or not is_usual(records, version)
            or records is None
            or records.readonly
            or not exchange.session.may_go_usual
            or index not in self._metadata_cache.topics.get(topic, _NO_PARTITIONS)
        ):
            return None
        topic_partition = new_tuple(TopicPartition, (topic, index))
        is_internal_allowed = exchange.client_id == ADMIN_CLIENT_ID
        result = self.replica_manager.append_records_usual(
            topic_partition, records, request.acks, is_internal_allowed=is_internal_allowed
        )
        if result is None:
            return None
        error, base_offset, append_time_ms, log_start = result
        if error is None:
            offsets = (base_offset, append_time_ms, log_start)
            return encode_produce_response_usual(version, topic, index, offsets)
        return self._encoded_all({topic_partition: result}, exchange)

    def answer(
        self, request: ProduceRequest, exchange: Exchange
    ) -> bytes | Promise[bytes | None] | None:
        """Answer a request of whatever kind, as `handle` does."""
        version = exchange.api_version
        try:
            batches, refused = self._judged(request, exchange)
        except (CorruptMessage, TransactionalIdRefused) as fault:
            return self._refuse_all(request, exchange, fault)
        acks = request.acks
        appended: Results | Promise[Results] = {}
        if batches:
            appended = self.replica_manager.append_records(
                batches,
                acks,
                request.timeout_ms,
                is_internal_allowed=exchange.client_id == ADMIN_CLIENT_ID,
            )

        def response(results: Results) -> bytes | None:
            if version < _FIRST_WITH_BATCHES:
                results = _written_nothing(results)
            return self._owed({**results, **refused} if refused else results, acks, exchange)

        return appended.then(response) if isinstance(appended, Promise) else response(appended)

    def _judged(
        self, request: ProduceRequest, exchange: Exchange
    ) -> tuple[dict[TopicPartition, memoryview], Results]:
        """Return what is to be appended, and the responses for what may not be.

        Raises what refuses all of the request: CorruptMessage, TransactionalIdRefused.
        """
        batches: dict[TopicPartition, memoryview] = {}
        refused: Results = {}
        version, session = exchange.api_version, exchange.session
        id_ = request.transactional_id
        may_use_id = id_ is None or session.may(
            AclOperation.WRITE, AclResource.TRANSACTIONAL_ID, id_
        )
        for topic, partitions in request.topics:
            indexes = self._metadata_cache.topics.get(topic, _NO_PARTITIONS)
            may_write = session.may(AclOperation.WRITE, AclResource.TOPIC, topic)
            for index, records in partitions:
                topic_partition = new_tuple(TopicPartition, (topic, index))
                error: ApiError | None = None
                if not is_usual(records, version):
                    error = judged(records, id_ if may_use_id else None, version)
                if not may_write:
                    error = NotAuthorized(AclResource.TOPIC)
                elif index not in indexes:
                    error = UnknownTopicOrPartition(topic_partition)
                if error is not None:
                    refused[topic_partition] = ProduceResult(error)
                elif records is None:
                    batches[topic_partition] = memoryview(b"")
                else:
                    # Offsets are set in the batch itself.
                    writable = memoryview(bytearray(records)) if records.readonly else records
                    batches[topic_partition] = writable
        return batches, refused

    def _refuse_all(self, request: ProduceRequest, exchange: Exchange, error: ApiError) -> bytes:
        """Refuse all partitions for what the first batch of one of them is."""
        if request.acks == 0:
            raise CloseConnection(f"a produce with acks=0 failed: {error.name}")
        message = error.reason if isinstance(error, CorruptMessage) else None
        topics = [
            (
                topic,
                [
                    ProducedPartition(index, error.code, -1, -1, -1, error_message=message)
                    for index, _ in partitions
                ],
            )
            for topic, partitions in request.topics
        ]
        throttle_ms = exchange.throttle_ms
        return encode_produce_response(exchange.api_version, topics, None, throttle_ms)

    def _owed(self, results: Results, acks: int, exchange: Exchange) -> bytes | None:
        """Return the response, None if none is owed.

        Raises CloseConnection in place of a response that is not owed and has an error.
        """
        if acks != 0:
            return self.encoded(results, exchange)
        failures = [
            f"{topic_partition}: {result.error.name}"
            for topic_partition, result in results.items()
            if result.error is not None
        ]
        if failures:
            raise CloseConnection(f"a produce with acks=0 failed: {', '.join(failures)}")
        return None

    def encoded(self, results: Results, exchange: Exchange) -> bytes:
        """Return results as the client of an exchange reads them."""
        version = exchange.api_version
        if len(results) == 1 and version >= _FIRST_WITH_LOG_START and not exchange.throttle_ms:
            (((topic, index), (error, base_offset, append_time_ms, log_start)),) = results.items()
            if error is None:
                offsets = (base_offset, append_time_ms, log_start)
                return encode_produce_response_usual(version, topic, index, offsets)
        return self._encoded_all(results, exchange)

    def _encoded_all(self, results: Results, exchange: Exchange) -> bytes:
        version = exchange.api_version
        leaders: CurrentLeaders | None = None
        topics: dict[str, list[ProducedPartition]] = {}
        for topic_partition, result in results.items():
            error, base_offset, append_time_ms, log_start = result
            topic, index = topic_partition
            if error is None:
                row = ProducedPartition(index, 0, base_offset, append_time_ms, log_start)
            else:
                row = self._failed(topic_partition, result, error)
                if error.code == NOT_LEADER_OR_FOLLOWER and version >= _FIRST_WITH_LEADERS:
                    if leaders is None:
                        leaders = self._leaders(exchange)
                    row = row._replace(current_leader=leaders.find(topic_partition))
            rows = topics.get(topic)
            if rows is None:
                topics[topic] = [row]
            else:
                rows.append(row)
        endpoints = None if leaders is None else leaders.endpoints
        return encode_produce_response(
            version, list(topics.items()), endpoints, exchange.throttle_ms
        )

    def _leaders(self, exchange: Exchange) -> CurrentLeaders:
        return CurrentLeaders(self.replica_manager, self._metadata_cache, exchange.session.listener)

    @staticmethod
    def _failed(
        topic_partition: TopicPartition, result: ProduceResult, error: ApiError
    ) -> ProducedPartition:
        made = ProducedPartition(
            topic_partition.partition,
            error.code,
            result.base_offset,
            result.log_append_time_ms,
            result.log_start_offset,
        )
        if isinstance(error, RecordsRefused) and error.record_errors:
            return made._replace(record_errors=error.record_errors, error_message=error.reason)
        return made


def _written_nothing(results: Results) -> Results:
    """Return results with success where there was no batch: old producers may send none."""
    return {
        topic_partition: result._replace(error=None)
        if isinstance(result.error, NoBatch)
        else result
        for topic_partition, result in results.items()
    }
