"""Produce (0): append records of producers, and respond by `acks`.

```
acks  0   appended, no response; an error ends the connection, the only sign for the client
      1   answered after the leader's append
     -1   answered when the in-sync replicas have it, or the request's timeout is over
```

| versions | difference |
|---|---|
| 0, 1, 2 | messages of magic 0 and 1, written again as one batch |
| 3 | one batch of magic 2 per partition |
| 5 | + log start in the response |
| 7 | zstd is allowed |
| 8 | + which records were refused |
| 10 | + the current leader (KIP-951) |

The first transactional records for a partition wait until their coordinator has confirmed that it
is in the transaction (`transaction_verifier.py`).
Source: KafkaApis.handleProduceRequest, ReplicaManager.appendToLocalLog; PUR-10.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, TypeAlias

from engine.api.admission import AclOperation, AclResource, NotAuthorized
from engine.api.exchange import CloseConnection, EncodedResponse, Exchange, Handled
from engine.api.produce_leaders import CurrentLeaders
from engine.api.produce_records import (
    TransactionalIdRefused,
    TwoProducers,
    is_fast_path,
    needs_transaction,
    refusal_of_records,
    transactional_batch,
)
from engine.api.promised import in_order, promised
from engine.api.request_pieces import has_many_partitions, pieces
from engine.api.transaction_verifier import (
    NotVerified,
    TransactionalBatch,
    TransactionVerifier,
    Verified,
)
from engine.errors import ApiError
from engine.hash_order import partitions_in_java_hash_order
from engine.host.promise import Promise
from engine.host.turns import LoopTurns, Share
from engine.kafka_errors import NOT_LEADER_OR_FOLLOWER
from engine.limits import ROWS_PER_SHARE
from engine.log.local_log import DATA_ATTRIBUTES
from engine.log.validation import CorruptMessage, NoBatch, RecordsRefused, UnreadableRecords
from engine.model import TopicPartition, new_tuple
from engine.naming import ADMIN_CLIENT_ID
from engine.replication.delayed_produce import ProduceResult
from engine.replication.errors import UnknownTopicOrPartition
from engine.replication.metadata_cache import MetadataCache
from engine.replication.replica_manager import ReplicaManager
from engine.wire.produce_bytes import (
    ProducedPartition,
    ProducedRecords,
    ProduceRequest,
    encode_produce_response,
    encode_produce_response_fast,
)

Results: TypeAlias = dict[TopicPartition, ProduceResult]
#: An encoded response: bytes if it has one partition and no error.
Encoded: TypeAlias = bytes | EncodedResponse

_FIRST_WITH_BATCHES = 3
_FIRST_WITH_LOG_START = 5
_FIRST_WITH_LEADERS = 10
_FIRST_WITH_ABORTABLE = 11
#: The errors that refuse the whole request.
_REFUSE_ALL = (CorruptMessage, TransactionalIdRefused, TwoProducers, UnreadableRecords)


class _Judged(NamedTuple):
    """A checked request: the batches to append, and the results of refused partitions."""

    batches: dict[TopicPartition, memoryview]
    refused: Results
    #: The batches that are part of a transaction.
    transactional: dict[TopicPartition, TransactionalBatch]

    def refuse(self, errors: Mapping[TopicPartition, ApiError]) -> None:
        """Refuse partitions with these errors: their batches are not appended.

        An earlier refusal stays.
        """
        for key, error in errors.items():
            del self.batches[key]
            self.refused.setdefault(key, ProduceResult(error))


class _Answered:
    """The rows of a response, and the current leaders in it."""

    def __init__(self, exchange: Exchange) -> None:
        self.topics: dict[str, list[ProducedPartition]] = {}
        self.exchange = exchange
        self.leaders: CurrentLeaders | None = None

    def encode(self) -> EncodedResponse:
        """Return the encoded response, with its error counts."""
        exchange, leaders = self.exchange, self.leaders
        endpoints = None if leaders is None else leaders.endpoints
        body = encode_produce_response(
            exchange.api_version, list(self.topics.items()), endpoints, exchange.throttle_ms
        )
        errors = Counter(row.error_code for rows in self.topics.values() for row in rows)
        return EncodedResponse([body], None, errors)


class Produce:
    """Answers Produce; takes requests that `decode_produce_request` decodes."""

    def __init__(
        self,
        replica_manager: ReplicaManager,
        metadata_cache: MetadataCache,
        turns: LoopTurns,
        verifier: TransactionVerifier,
    ) -> None:
        """Create the handler; `verifier` verifies transactional batches with their coordinators."""
        self.replica_manager = replica_manager
        self._verifier = verifier
        self._metadata_cache = metadata_cache
        self._turns = turns

    def handle(self, request: ProduceRequest, exchange: Exchange) -> Handled:
        """Serve a Produce: append the batches of the request.

        Returns the response, a promise of it, or None for acks=0. No part of the request is kept:
        its records are in a buffer that the next frame overwrites. Records of many partitions are
        copied, and appended in several turns of the event loop.
        """
        response = self.answer_fast(request, exchange)
        return self.answer(request, exchange) if response is None else response

    def answer_fast(
        self, request: ProduceRequest, exchange: Exchange
    ) -> Encoded | Promise[Encoded] | None:
        """Append one batch to the only partition and return the response, or a promise of it.

        Returns None, with nothing done, for a request of another shape, or if the client can be
        denied something.
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
            or not is_fast_path(records, version)
            or records is None
            or records.readonly
            or not exchange.session.is_admitted(AclOperation.WRITE, AclResource.TOPIC, topic)
            or not self._metadata_cache.is_known(
                topic_partition := new_tuple(TopicPartition, (topic, index))
            )
        ):
            return None
        is_internal_allowed = exchange.client_id == ADMIN_CLIENT_ID
        appended = self.replica_manager.append_records_fast(
            topic_partition,
            records,
            request.acks,
            request.timeout_ms,
            is_internal_allowed=is_internal_allowed,
        )

        if appended is None:
            return None
        if isinstance(appended, Promise):
            return appended.then(lambda results: self._encode_one(results, exchange))
        error, base_offset, append_time_ms, log_start = appended
        if error is None:
            offsets = (base_offset, append_time_ms, log_start)
            return encode_produce_response_fast(version, topic, index, offsets)
        return self.encode_all({topic_partition: appended}, exchange)

    def _encode_one(self, results: Results, exchange: Exchange) -> Encoded:
        """Encode the response to a request of one batch, after the wait for acks=all."""
        (((topic, index), (error, *offsets)),) = results.items()
        if error is not None:
            return self.encode_all(results, exchange)
        base_offset, append_time_ms, log_start = offsets
        found = (base_offset, append_time_ms, log_start)
        return encode_produce_response_fast(exchange.api_version, topic, index, found)

    def answer(
        self, request: ProduceRequest, exchange: Exchange
    ) -> Encoded | Promise[Encoded | None] | None:
        """Append the batches by the general path; return the response, a promise of it, or None.

        None is for acks=0. An error that refuses the whole request is the code of all partitions.
        """
        if has_many_partitions(request.topics):
            over: Promise[None] = Promise()
            return in_order(
                promised(self._answer_in_turns(_copy_request(request), exchange, over)), over
            )
        found = _Judged({}, {}, {})
        try:
            for topic, partitions in request.topics:
                self._judge(request, topic, partitions, exchange, found)
            _check_producers(found)
        except _REFUSE_ALL as fault:
            return self._refuse_all(request, exchange, fault)
        if not found.transactional:
            return self._append(request, exchange, found)
        verified = self._verify(request, exchange, found)
        if verified.is_kept:
            found.refuse(self._verifier.check(verified.result(), found.transactional))
            return self._append(request, exchange, found)
        for key, records in found.batches.items():
            found.batches[key] = memoryview(bytearray(records))
        # Free the other records while the coordinator is waited for.
        request = request._replace(topics=[])
        ended: Promise[None] = Promise()
        work = self._append_verified(request, exchange, found, verified, ended)
        return in_order(promised(work), ended)

    def _verify(
        self, request: ProduceRequest, exchange: Exchange, found: _Judged
    ) -> Promise[Verified]:
        """Promise which transactional batches may be appended.

        Their coordinator confirms them (KIP-890).
        """
        assert request.transactional_id is not None
        return self._verifier.verify(
            request.transactional_id,
            found.transactional,
            knows_abortable=exchange.api_version >= _FIRST_WITH_ABORTABLE,
        )

    async def _append_verified(
        self,
        request: ProduceRequest,
        exchange: Exchange,
        found: _Judged,
        verified: Promise[Verified],
        ended: Promise[None],
    ) -> Encoded | None:
        """Append the batches once the transaction's coordinator has confirmed them.

        Returns the response. `ended` is kept after the append, before the wait for followers: the
        connection's next request may then be served.
        """
        found.refuse(self._verifier.check(await verified, found.transactional))
        response = self._append(request, exchange, found)
        ended.keep(None)
        return await response if isinstance(response, Promise) else response

    def _append(
        self, request: ProduceRequest, exchange: Exchange, found: _Judged
    ) -> Encoded | Promise[Encoded | None] | None:
        """Append the batches that are not refused; return the response, or promise it.

        A promise waits for the acks of followers (acks=all). None is for acks=0.
        """
        _, refused, _ = found
        version, acks = exchange.api_version, request.acks
        appended = self._append_batches(request, exchange, found) if found.batches else {}

        def response(results: Results) -> Encoded | None:
            """Encode the results of the appends together with the refused partitions."""
            if version < _FIRST_WITH_BATCHES:
                results = _accept_no_batch(results)
            return self._response_unless_acks_0(
                {**results, **refused} if refused else results, acks, exchange
            )

        return appended.then(response) if isinstance(appended, Promise) else response(appended)

    def _append_batches(
        self, request: ProduceRequest, exchange: Exchange, found: _Judged
    ) -> Results | Promise[Results]:
        """Append the batches; return the results, or promise them if acks of followers are missing.

        One transactional batch takes the fast append.
        """
        batches, acks, timeout_ms = found.batches, request.acks, request.timeout_ms
        is_internal_allowed = exchange.client_id == ADMIN_CLIENT_ID
        if found.transactional and len(batches) == 1:
            ((key, records),) = batches.items()
            appended = self.replica_manager.append_records_fast(
                key,
                records,
                acks,
                timeout_ms,
                is_internal_allowed=is_internal_allowed,
                fast_attributes=DATA_ATTRIBUTES,
            )
            if appended is not None:
                return {key: appended} if isinstance(appended, ProduceResult) else appended
        return self.replica_manager.append_records(
            batches, acks, timeout_ms, is_internal_allowed=is_internal_allowed
        )

    async def _answer_in_turns(
        self, request: ProduceRequest, exchange: Exchange, over: Promise[None]
    ) -> Encoded | None:
        """Serve a request of many partitions in several turns.

        `over` is kept when all are appended. All partitions are judged before the first is
        appended. If the client closes its connection meanwhile, its records are still appended, as
        in Kafka.
        """
        share = self._turns.begin()
        try:
            found = await self._judge_in_turns(request, exchange, share)
        except _REFUSE_ALL as fault:
            return self._refuse_all(request, exchange, fault)
        batches, refused, transactional = found
        if transactional:
            # In one turn: the transaction might end between two turns.
            verified = self._verify(request, exchange, found)
            return await self._append_verified(request, exchange, found, verified, over)
        acks, timeout_ms = request.acks, request.timeout_ms
        # Free its records while followers are waited for.
        del request
        results: Results = {}
        if batches:
            appended = await self.replica_manager.appends.append_in_turns(
                batches,
                acks,
                timeout_ms,
                share,
                is_internal_allowed=exchange.client_id == ADMIN_CLIENT_ID,
            )
            batches.clear()
            if isinstance(appended, Promise):
                over.keep(None)
                results = await appended
            else:
                results = appended
        await share.next()
        if exchange.api_version < _FIRST_WITH_BATCHES:
            results = _accept_no_batch(results)
        results = {**results, **refused}
        if acks == 0:
            return self._response_unless_acks_0(results, 0, exchange)
        return await self._encode_in_turns(results, exchange, share)

    async def _judge_in_turns(
        self, request: ProduceRequest, exchange: Exchange, share: Share
    ) -> _Judged:
        """Decide for each partition of a large request whether its batch may be appended,
        in turns.
        """
        found = _Judged({}, {}, {})
        for topic, partitions in pieces(request.topics):
            if share.is_over():
                await share.next()
            self._judge(request, topic, partitions, exchange, found)
        _check_producers(found)
        return found

    def _judge(
        self,
        request: ProduceRequest,
        topic: str,
        partitions: Sequence[ProducedRecords],
        exchange: Exchange,
        found: _Judged,
    ) -> None:
        """Add each partition of a topic to `found`: its batch is to be appended, or refused.

        A batch of a transaction is also added to those to verify. Raises the errors that refuse the
        whole request: CorruptMessage, TransactionalIdRefused, UnreadableRecords.
        """
        batches, refused, transactional = found
        version, session = exchange.api_version, exchange.session
        id_ = request.transactional_id
        may_use_id = id_ is None or session.may(
            AclOperation.WRITE, AclResource.TRANSACTIONAL_ID, id_
        )
        may_write = session.may(AclOperation.WRITE, AclResource.TOPIC, topic)
        for index, records in partitions:
            topic_partition = new_tuple(TopicPartition, (topic, index))
            error: ApiError | None = None
            usable_id = id_ if may_use_id else None
            is_fast = is_fast_path(records, version, usable_id)
            is_in_transaction = not is_fast and needs_transaction(records, usable_id)
            if not may_write:
                error = NotAuthorized(AclResource.TOPIC)
            elif not self._metadata_cache.is_known(topic_partition):
                error = UnknownTopicOrPartition(topic_partition)
            elif not is_fast:
                error = refusal_of_records(
                    records, usable_id, version, is_in_transaction=is_in_transaction
                )
            if error is not None:
                refused[topic_partition] = ProduceResult(error)
            elif records is None:
                batches[topic_partition] = memoryview(b"")
                transactional.pop(topic_partition, None)
            else:
                # Offsets are set in the batch itself.
                writable = memoryview(bytearray(records)) if records.readonly else records
                batches[topic_partition] = writable
                may_be_in_transaction = is_in_transaction or (is_fast and usable_id is not None)
                batch = transactional_batch(records) if may_be_in_transaction else None
                if batch is not None:
                    transactional[topic_partition] = batch
                elif transactional:
                    # If a partition is named twice, the last batch is used.
                    transactional.pop(topic_partition, None)

    def _refuse_all(
        self, request: ProduceRequest, exchange: Exchange, error: ApiError
    ) -> EncodedResponse:
        """Return the response that refuses all partitions with the error of one batch.

        With acks=0 it raises CloseConnection.

        Source: ProduceRequest.getErrorResponse, whose partitions have the order of a hash map that
        `compute` fills.
        """
        message = error.reason if isinstance(error, CorruptMessage) else None
        named = dict.fromkeys(
            TopicPartition(topic, index)
            for topic, partitions in request.topics
            for index, _ in partitions
        )
        errors = {error.code: len(named)}
        if request.acks == 0:
            raise CloseConnection(f"a produce with acks=0 failed: {error.name}", errors)
        topics: dict[str, list[ProducedPartition]] = {}
        for topic, index in partitions_in_java_hash_order(named, are_computed=True):
            row = ProducedPartition(index, error.code, -1, -1, -1, error_message=message)
            topics.setdefault(topic, []).append(row)
        throttle_ms = exchange.throttle_ms
        rows = list(topics.items())
        body = encode_produce_response(exchange.api_version, rows, None, throttle_ms)
        return EncodedResponse([body], None, errors)

    def _response_unless_acks_0(
        self, results: Results, acks: int, exchange: Exchange
    ) -> Encoded | None:
        """Encode the response; return None for acks=0, where the client expects none.

        With acks=0 an error raises CloseConnection, the only way to signal it to the client.
        """
        if acks != 0:
            return self.encode(results, exchange)
        failures = [
            f"{topic_partition}: {result.error.name}"
            for topic_partition, result in results.items()
            if result.error is not None
        ]
        if failures:
            codes = (0 if it.error is None else it.error.code for it in results.values())
            reason = f"a produce with acks=0 failed: {', '.join(failures)}"
            raise CloseConnection(reason, Counter(codes))
        return None

    def encode(self, results: Results, exchange: Exchange) -> Encoded:
        """Encode the results as a response, one success by the fast encoder."""
        version = exchange.api_version
        if len(results) == 1 and version >= _FIRST_WITH_LOG_START and not exchange.throttle_ms:
            (((topic, index), (error, base_offset, append_time_ms, log_start)),) = results.items()
            if error is None:
                offsets = (base_offset, append_time_ms, log_start)
                return encode_produce_response_fast(version, topic, index, offsets)
        return self.encode_all(results, exchange)

    def encode_all(self, results: Results, exchange: Exchange) -> EncodedResponse:
        """Encode any number of results, with or without errors, as a response."""
        answered = _Answered(exchange)
        self._add_rows(results.items(), answered)
        return answered.encode()

    async def _encode_in_turns(
        self, results: Results, exchange: Exchange, share: Share
    ) -> EncodedResponse:
        """Encode many results in several turns, between which other requests are served."""
        answered = _Answered(exchange)
        left = iter(results.items())
        while some := tuple(islice(left, ROWS_PER_SHARE)):
            if share.is_over():
                await share.next()
            self._add_rows(some, answered)
        await share.next()
        return answered.encode()

    def _add_rows(
        self, results: Iterable[tuple[TopicPartition, ProduceResult]], answered: _Answered
    ) -> None:
        """Add a response row for each partition to `answered`.

        From version 10 on the row of NOT_LEADER_OR_FOLLOWER names the current leader.
        """
        exchange, topics = answered.exchange, answered.topics
        version = exchange.api_version
        for topic_partition, result in results:
            error, base_offset, append_time_ms, log_start = result
            topic, index = topic_partition
            if error is None:
                row = ProducedPartition(index, 0, base_offset, append_time_ms, log_start)
            else:
                row = self._refused_row(topic_partition, result, error)
                if error.code == NOT_LEADER_OR_FOLLOWER and version >= _FIRST_WITH_LEADERS:
                    if answered.leaders is None:
                        answered.leaders = self._leaders(exchange)
                    row = row._replace(current_leader=answered.leaders.find(topic_partition))
            rows = topics.get(topic)
            if rows is None:
                topics[topic] = [row]
            else:
                rows.append(row)

    def _leaders(self, exchange: Exchange) -> CurrentLeaders:
        """Return the finder of current leaders, for rows with NOT_LEADER_OR_FOLLOWER (KIP-951)."""
        return CurrentLeaders(self.replica_manager, self._metadata_cache, exchange.session.listener)

    @staticmethod
    def _refused_row(
        topic_partition: TopicPartition, result: ProduceResult, error: ApiError
    ) -> ProducedPartition:
        """Return the response row of a refused partition, with its message and record errors."""
        made = ProducedPartition(
            topic_partition.partition,
            error.code,
            result.base_offset,
            result.log_append_time_ms,
            result.log_start_offset,
        )
        if isinstance(error, NotVerified):
            return made._replace(error_message=error.detail)
        if isinstance(error, RecordsRefused) and error.record_errors:
            return made._replace(record_errors=error.record_errors, error_message=error.reason)
        return made


def _check_producers(found: _Judged) -> None:
    """Raise TwoProducers unless all transactional batches of the request have the same producer."""
    if (
        len({(batch.producer_id, batch.producer_epoch) for batch in found.transactional.values()})
        > 1
    ):
        raise TwoProducers


def _copy_request(request: ProduceRequest) -> ProduceRequest:
    """Return a request with a copy of its records, for work after this turn of the event loop.

    The connection's next frame overwrites the buffer that the original records are in.
    """
    topics = [
        (topic, [(index, _copy_of(records)) for index, records in partitions])
        for topic, partitions in request.topics
    ]
    return request._replace(topics=topics)


def _copy_of(records: memoryview | None) -> memoryview | None:
    """Return a copy of the records; null stays None."""
    return None if records is None else memoryview(bytearray(records))


def _accept_no_batch(results: Results) -> Results:
    """Replace NoBatch errors by success: producers before version 3 may send no batch."""
    return {
        topic_partition: result._replace(error=None)
        if isinstance(result.error, NoBatch)
        else result
        for topic_partition, result in results.items()
    }
