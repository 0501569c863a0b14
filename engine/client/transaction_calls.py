"""The requests of a transactional producer to its coordinators.

| request | to the coordinator of | highest version |
|---|---|---|
| InitProducerId | the transactional id | 5; 6 prepares transactions (KIP-939) |
| AddPartitionsToTxn | the transactional id | 3; later ones are for brokers |
| AddOffsetsToTxn | the transactional id | 4 |
| TxnOffsetCommit | the group | 4; 5 takes the group into the transaction by itself |
| EndTxn | the transactional id | 4; 5 raises the epoch with each transaction |

Versions that a client of transaction version 2 sends are left out: every broker that serves
transactions takes these (KIP-890).

Source: KIP-98, KIP-360, KIP-447, KIP-890.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.errors import api_error
from engine.kafka_errors import CONCURRENT_TRANSACTIONS, NONE, OPERATION_NOT_ATTEMPTED
from engine.model import TopicPartition, by_topic
from engine.wire import messages
from engine.wire.structs import Message

TRANSACTION_KEY: Final = 1
#: The longest back-off while the coordinator completes a transaction, which takes some ms.
_BUSY_BACK_OFF_MAX: Final = 2


class ProducerIdentity(NamedTuple):
    """A producer id and its epoch."""

    producer_id: int
    producer_epoch: int


class GroupMembership(NamedTuple):
    """The committing member of a group; the defaults are for a consumer that is not a member."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


class TransactionCalls:
    """Sends requests to the coordinators of one transactional id and of groups.

    Every method raises ApiError with the code of a final refusal; after the client's timeout, the
    error that prevented a response.
    """

    def __init__(self, client: KafkaClient, transactional_id: str, timeout_ms: int) -> None:
        self._client = client
        self.transactional_id = transactional_id
        self._timeout_ms = timeout_ms

    def init(self, identity: ProducerIdentity | None = None) -> ProducerIdentity:
        """Send InitProducerId: it fences earlier instances, and aborts their open transaction.

        Returns producer id and epoch. With the current `identity` its epoch is raised; refused if
        another instance has raised it.
        """
        request = messages.InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=self._timeout_ms
        )
        if identity is not None:
            request.producer_id, request.producer_epoch = identity
        response = self._call_coordinator(
            "InitProducerId", request, 5, lowest=0 if identity is None else 3
        )
        _raise_unless_none(response.error_code)
        return ProducerIdentity(response.producer_id, response.producer_epoch)

    def add_partitions(
        self, identity: ProducerIdentity, partitions: Collection[TopicPartition]
    ) -> None:
        """Add partitions to the transaction by AddPartitionsToTxn.

        A batch for them may then be sent. Raises ApiError.
        """
        of = messages.AddPartitionsToTxnRequest
        request = of(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=identity.producer_id,
            v3_and_below_producer_epoch=identity.producer_epoch,
            v3_and_below_topics=[
                of.AddPartitionsToTxnTopic(name=topic, partitions=[p.partition for p in rows])
                for topic, rows in by_topic(partitions).items()
            ],
        )
        response = self._call_coordinator("AddPartitionsToTxn", request, 3)
        _raise_unless_none(_first_decisive_code(response))

    def add_group(self, identity: ProducerIdentity, group_id: str) -> None:
        """Add a group's partition of __consumer_offsets to the transaction. Raises ApiError."""
        request = messages.AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            group_id=group_id,
        )
        _raise_unless_none(self._call_coordinator("AddOffsetsToTxn", request, 4).error_code)

    def commit_offsets(
        self,
        identity: ProducerIdentity,
        group: GroupMembership,
        offsets: Mapping[TopicPartition, int],
    ) -> None:
        """Commit a group's next offsets, by partition, as part of the transaction.

        Raises ApiError.
        """
        of = messages.TxnOffsetCommitRequest
        request = of(
            transactional_id=self.transactional_id,
            group_id=group.group_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            generation_id=group.generation_id,
            member_id=group.member_id,
            group_instance_id=group.group_instance_id,
            topics=[
                of.TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        of.TxnOffsetCommitRequestPartition(
                            partition_index=key.partition,
                            committed_offset=offsets[key],
                            committed_metadata="",
                        )
                        for key in rows
                    ],
                )
                for topic, rows in by_topic(offsets).items()
            ],
        )
        response = self._client.send_to_coordinator(
            group.group_id,
            "TxnOffsetCommit",
            request,
            retriable_code=_committed_code,
            # The request has the member from version 3 on.
            lowest=3 if group.generation_id >= 0 else 0,
            highest=4,
        )
        _raise_unless_none(_committed_code(response.message))

    def end(self, identity: ProducerIdentity, *, is_commit: bool) -> None:
        """Commit or abort the transaction by EndTxn. Raises ApiError."""
        request = messages.EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            committed=is_commit,
        )
        _raise_unless_none(self._call_coordinator("EndTxn", request, 4).error_code)

    def _call_coordinator(
        self, api_name: str, request: Message, highest: int, *, lowest: int = 0
    ) -> Message:
        """Send a request to the transaction coordinator; return the response's message.

        `send_to_coordinator` retries errors of a coordinator that has moved.
        CONCURRENT_TRANSACTIONS comes from the coordinator itself while it completes the previous
        transaction: it is retried here with back-off, and returned after the client's timeout.
        """
        code_of = _first_decisive_code if api_name == "AddPartitionsToTxn" else _response_code
        deadline_ms = self._client.clock.monotonic_ms() + self._client.timeout_ms
        attempt = 0
        while True:
            response = self._client.send_to_coordinator(
                self.transactional_id,
                api_name,
                request,
                key_type=TRANSACTION_KEY,
                retriable_code=lambda message: _code_unless_busy(code_of(message)),
                lowest=lowest,
                highest=highest,
            )
            is_busy = code_of(response.message) == CONCURRENT_TRANSACTIONS
            if not is_busy or self._client.clock.monotonic_ms() >= deadline_ms:
                return response.message
            self._client.back_off(min(attempt, _BUSY_BACK_OFF_MAX))
            attempt += 1


def _code_unless_busy(code: int) -> int:
    """Return the error code for which another coordinator is looked up.

    It is NONE for CONCURRENT_TRANSACTIONS, which another lookup cannot resolve.
    """
    return NONE if code == CONCURRENT_TRANSACTIONS else code


def _raise_unless_none(code: int) -> None:
    """Raise ApiError unless the code is NONE."""
    if code != NONE:
        raise api_error(code)


def _response_code(message: Message) -> int:
    """Return the response's error code."""
    return int(message.error_code)


def _first_decisive_code(message: Message) -> int:
    """Return the error code that decides an AddPartitionsToTxn response, NONE without errors.

    Partitions that were not attempted because of another one's error do not count.
    """
    codes = [
        int(row.partition_error_code)
        for topic in message.results_by_topic_v3_and_below
        for row in topic.results_by_partition
    ]
    return _first_error(codes)


def _committed_code(message: Message) -> int:
    """Return the error code that decides a TxnOffsetCommit response, NONE without errors."""
    return _first_error(
        [int(row.error_code) for topic in message.topics for row in topic.partitions]
    )


def _first_error(codes: list[int]) -> int:
    """Return the first code that is an error; OPERATION_NOT_ATTEMPTED only if there is no other.

    That code is a consequence of another partition's error. NONE without errors.
    """
    errors = [code for code in codes if code != NONE]
    caused = [code for code in errors if code != OPERATION_NOT_ATTEMPTED]
    return next(iter(caused or errors), NONE)
