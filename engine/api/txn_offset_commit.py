"""TxnOffsetCommit (28): the positions of a group's consumers as part of a transaction.

| versions | difference |
|---|---|
| 2 | leader epochs; COORDINATOR_LOAD_IN_PROGRESS, before COORDINATOR_NOT_AVAILABLE |
| 3 | member, generation and instance (KIP-447) |
| 4 | TRANSACTION_ABORTABLE |

The coordinator of the transaction verifies that the group's partition is in it, as for records.

Source: KafkaApis.handleTxnOffsetCommitRequest, GroupCoordinator.handleTxnCommitOffsets of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.api.admission import AclOperation, AclResource
from engine.api.commit_admission import AdmittedOffsets, admit_offsets, refuse_offsets
from engine.api.commit_order import commit_result_rows
from engine.api.exchange import Exchange
from engine.api.promised import in_order, promised
from engine.api.transaction_verifier import TransactionalBatch, TransactionVerifier
from engine.groups.group_offsets import CommittedOffset
from engine.groups.group_store import LOG_ERRORS
from engine.groups.offset_commits import Codes, OffsetCommits
from engine.groups.ports import CommittingProducer
from engine.groups.requests import MemberRequest
from engine.host.ports import Clock
from engine.host.promise import Promise
from engine.kafka_errors import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    GROUP_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)
from engine.model import TopicPartition
from engine.naming import CONSUMER_OFFSETS
from engine.records.record import NO_SEQUENCE
from engine.replication.metadata_cache import MetadataCache
from engine.wire import messages

_FIRST_WITH_LOADING = 2
_FIRST_WITH_ABORTABLE = 4

_Request = messages.TxnOffsetCommitRequest
_Response = messages.TxnOffsetCommitResponse


class TxnOffsetCommit:
    """Answers TxnOffsetCommit."""

    def __init__(
        self,
        commits: OffsetCommits,
        refusal_of: Callable[[str], int],
        partition_of: Callable[[str], int],
        metadata_cache: MetadataCache,
        clock: Clock,
        verifier: TransactionVerifier,
    ) -> None:
        """Create the handler; `refusal_of` returns the code for a group not served here, else 0.

        `partition_of` returns a group's partition of `__consumer_offsets`.
        """
        self._commits = commits
        self._refusal_of = refusal_of
        self._partition_of = partition_of
        self._metadata_cache = metadata_cache
        self._clock = clock
        self._verifier = verifier

    def handle(self, request: _Request, exchange: Exchange) -> _Response | Promise[_Response]:
        """Commit a group's offsets in a transaction, as far as the client may.

        Promises each code.
        """
        session, group_id = exchange.session, request.group_id
        id_ = request.transactional_id
        if not session.may(AclOperation.WRITE, AclResource.TRANSACTIONAL_ID, id_):
            return _response(
                request, refuse_offsets(request.topics, TRANSACTIONAL_ID_AUTHORIZATION_FAILED), {}
            )
        if not session.may(AclOperation.READ, AclResource.GROUP, group_id):
            return _response(
                request, refuse_offsets(request.topics, GROUP_AUTHORIZATION_FAILED), {}
            )
        now_ms = self._clock.wall_ms()

        def committed_of(row: _Request.TxnOffsetCommitRequestPartition) -> CommittedOffset:
            """Convert a row of the request to a committed offset.

            Its commit time is now (wall clock).
            """
            return CommittedOffset(
                row.committed_offset,
                row.committed_leader_epoch,
                row.committed_metadata or "",
                now_ms,
            )

        admitted = admit_offsets(request.topics, session, self._metadata_cache, committed_of)
        if not admitted.offsets:
            return _response(request, admitted, {})

        async def answer() -> _Response:
            """Commit the admitted offsets, and return the response with all partitions."""
            written = await self._commit(request, exchange.api_version, admitted.offsets)
            return _response(request, admitted, written)

        return in_order(promised(answer()))

    async def _commit(
        self,
        request: _Request,
        version: int,
        offsets: dict[TopicPartition, CommittedOffset],
    ) -> Codes:
        """Commit the offsets in the transaction; return the code of each partition."""
        code = self._refusal_of(request.group_id)
        if not code:
            # As in Kafka the group exists from now on, even if the transaction is refused next.
            self._commits.make_group(request.group_id)
            code = await self._verify_group_partition(request, version)
        if code:
            written = dict.fromkeys(offsets, code)
        else:
            member = MemberRequest(
                request.group_id,
                request.generation_id,
                request.member_id,
                request.group_instance_id,
            )
            producer = CommittingProducer(request.producer_id, request.producer_epoch)
            written = await self._commits.commit_in_transaction(member, producer, offsets)
        if version < _FIRST_WITH_LOADING:
            written = {key: _replace_loading(code) for key, code in written.items()}
        return written

    async def _verify_group_partition(self, request: _Request, version: int) -> int:
        """Return 0 if the transaction includes the group's partition of `__consumer_offsets`.

        Else the error code with which the transaction's coordinator refuses it.
        """
        partition = TopicPartition(CONSUMER_OFFSETS, self._partition_of(request.group_id))
        batch = TransactionalBatch(request.producer_id, request.producer_epoch, NO_SEQUENCE)
        verified = await self._verifier.verify(
            request.transactional_id,
            {partition: batch},
            knows_abortable=version >= _FIRST_WITH_ABORTABLE,
        )
        error = self._verifier.check(verified, {partition: batch}).get(partition)
        return 0 if error is None else LOG_ERRORS.get(error.code, error.code)


def _replace_loading(code: int) -> int:
    """Return the code for old clients, which do not know COORDINATOR_LOAD_IN_PROGRESS."""
    return COORDINATOR_NOT_AVAILABLE if code == COORDINATOR_LOAD_IN_PROGRESS else code


def _refused_response(request: _Request, code: int) -> _Response:
    """Return the response with one error code for all partitions."""
    return _response(request, refuse_offsets(request.topics, code), {})


def _response(request: _Request, admitted: AdmittedOffsets, written: Codes) -> _Response:
    """Return the response: the code of each partition, refused or written."""
    return _Response(
        topics=[
            _Response.TxnOffsetCommitResponseTopic(
                name=name,
                partitions=[
                    _Response.TxnOffsetCommitResponsePartition(
                        partition_index=index, error_code=code
                    )
                    for index, code in rows
                ],
            )
            for name, rows in commit_result_rows(
                request.topics, admitted.refused, written, admitted.refused_topics
            )
        ]
    )
