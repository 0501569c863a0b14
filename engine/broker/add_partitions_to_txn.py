"""Request coordinators to verify that partitions are in a producer's transaction (KIP-890, part 1).

```
 verification ─> queue of the coordinator's broker ─ one request in flight ─> codes, by id
```

| condition | error code |
|---|---|
| `__transaction_state`, or the leader of its partition, is missing | COORDINATOR_NOT_AVAILABLE |
| the connection to the coordinator fails or is lost | NETWORK_EXCEPTION |
| the coordinator's broker does not support it | 0: the batch is appended without verification |
| the broker is not authorized | INVALID_TXN_STATE |

Source: AddPartitionsToTxnManager of 3.9.1; TXN-8.
Differs: while a verification of an id waits, another one of the same id is queued; Kafka responds
at once with NETWORK_EXCEPTION, and clients retry.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from engine.broker.transaction_channels import TransactionChannels, by_topic
from engine.client.connection import Call
from engine.client.errors import NoCommonVersion
from engine.errors import ApiError
from engine.host.promise import Promise
from engine.kafka_errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    COORDINATOR_NOT_AVAILABLE,
    INVALID_TXN_STATE,
    NETWORK_EXCEPTION,
)
from engine.model import TopicPartition
from engine.naming import TRANSACTION_STATE
from engine.transactions.ports import TransactionOwner
from engine.wire import messages
from engine.wire.structs import Message

#: The first version with verify_only.
_FIRST_VERSION = 4
_Codes = dict[TopicPartition, int]


class _Verification(NamedTuple):
    """A queued verification and the promise of its error codes by partition."""

    owner: TransactionOwner
    answer: Promise[_Codes]


class AddPartitionsToTxnRequests:
    """The verify-only AddPartitionsToTxn requests of one broker to all coordinators."""

    def __init__(self, partition_of: Callable[[str], int], channels: TransactionChannels) -> None:
        """Create the sender of verifications; no verification is queued.

        `partition_of` returns the `__transaction_state` partition of a transactional id.
        """
        self._partition_of = partition_of
        self._channels = channels
        self._queues: dict[int, list[_Verification]] = {}
        self._busy: set[int] = set()

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
    ) -> Promise[_Codes]:
        """Ask the transaction's coordinator whether the transaction has these partitions.

        Promises a code per partition, 0 if the transaction has it. COORDINATOR_NOT_AVAILABLE at
        once if the coordinator is unknown.
        """
        broker_id = self._coordinator_of(transactional_id)
        if broker_id is None:
            return Promise.of(dict.fromkeys(partitions, COORDINATOR_NOT_AVAILABLE))
        answer: Promise[_Codes] = Promise()
        self._queues.setdefault(broker_id, []).append(
            _Verification(
                TransactionOwner(transactional_id, producer_id, producer_epoch, tuple(partitions)),
                answer,
            )
        )
        self._send_next(broker_id)
        return answer

    def _coordinator_of(self, transactional_id: str) -> int | None:
        """Return the broker id of a transactional id's coordinator, None without a leader."""
        partition = TopicPartition(TRANSACTION_STATE, self._partition_of(transactional_id))
        leader_id = self._channels.leader_of(partition)
        return None if leader_id is None or leader_id < 0 else leader_id

    def _send_next(self, broker_id: int) -> None:
        """Send a coordinator its queued verifications, unless a request to it is in flight.

        A request has at most one verification of an id; the other ones stay queued.
        """
        if broker_id in self._busy:
            return
        # A request has one row for each id.
        sent: dict[str, _Verification] = {}
        left: list[_Verification] = []
        for verification in self._queues.pop(broker_id, ()):
            transactional_id = verification.owner.transactional_id
            if transactional_id in sent:
                left.append(verification)
            else:
                sent[transactional_id] = verification
        if left:
            self._queues[broker_id] = left
        if not sent:
            return
        self._busy.add(broker_id)
        owners = [verification.owner for verification in sent.values()]
        call = Call(
            "AddPartitionsToTxn",
            lambda _version: _verification_request(owners),
            _FIRST_VERSION,
            local=owners,
        )
        response = self._channels.send(broker_id, call)
        response.watch(lambda: self._on_response(broker_id, sent, response))

    def _on_response(
        self, broker_id: int, sent: dict[str, _Verification], response: Promise[Message]
    ) -> None:
        """Keep the promises of a request's verifications, then send those queued meanwhile."""
        self._busy.discard(broker_id)
        answers = _codes_by_id(sent, response)
        for transactional_id, verification in sent.items():
            verification.answer.keep(answers[transactional_id])
        self._send_next(broker_id)


def _verification_request(
    owners: Collection[TransactionOwner],
) -> messages.AddPartitionsToTxnRequest:
    """Return an AddPartitionsToTxn request that only verifies the owners' partitions."""
    request = messages.AddPartitionsToTxnRequest
    return request(
        transactions=[
            request.AddPartitionsToTxnTransaction(
                transactional_id=owner.transactional_id,
                producer_id=owner.producer_id,
                producer_epoch=owner.producer_epoch,
                verify_only=True,
                topics=[
                    request.AddPartitionsToTxnTopic(name=name, partitions=indexes)
                    for name, indexes in by_topic(owner.partitions).items()
                ],
            )
            for owner in owners
        ]
    )


def _codes_by_id(sent: dict[str, _Verification], response: Promise[Message]) -> dict[str, _Codes]:
    """Return the codes of a response by transactional id and partition; a failed request fails all.

    A coordinator that is too old to verify counts as a success.
    """
    error = response.error
    if isinstance(error, NoCommonVersion):
        return _same_code_for_all(sent, 0)
    if error is not None:
        return _same_code_for_all(
            sent, error.code if isinstance(error, ApiError) else NETWORK_EXCEPTION
        )
    answered = response.result()
    if isinstance(answered, dict):
        # A coordinator in this process responds with the codes themselves.
        return answered
    assert isinstance(answered, messages.AddPartitionsToTxnResponse)
    code = answered.error_code
    if code:
        return _same_code_for_all(
            sent, INVALID_TXN_STATE if code == CLUSTER_AUTHORIZATION_FAILED else code
        )
    answers = _same_code_for_all(sent, NETWORK_EXCEPTION)
    for row in answered.results_by_transaction:
        codes = answers.get(row.transactional_id)
        if codes is not None:
            for topic in row.topic_results:
                for partition in topic.results_by_partition:
                    key = TopicPartition(topic.name, partition.partition_index)
                    codes[key] = partition.partition_error_code
    return answers


def _same_code_for_all(sent: dict[str, _Verification], code: int) -> dict[str, _Codes]:
    """Return the same error code for every partition of every verification."""
    return {
        transactional_id: dict.fromkeys(verification.owner.partitions, code)
        for transactional_id, verification in sent.items()
    }
