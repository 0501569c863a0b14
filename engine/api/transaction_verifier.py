"""A transaction's first batch for a partition is appended once its coordinator confirms (KIP-890).

1. A partition whose log has the transaction open needs no verification.
2. For all other partitions the coordinator is requested to verify, in one request.
3. When it has confirmed, and nothing has ended the transaction since, the batch may be appended. If
   the leader has changed meanwhile, clients get NOT_LEADER_OR_FOLLOWER, which they retry: most
   clients treat INVALID_TXN_STATE as fatal for their producer.

| the coordinator's answer | produce |
|---|---|
| not in that transaction | INVALID_TXN_STATE; TRANSACTION_ABORTABLE for clients that know it |
| PRODUCER_FENCED | INVALID_PRODUCER_EPOCH |
| not available, loading, busy, lost | NOT_ENOUGH_REPLICAS, which clients of any age retry |
| another error | the same error |

Source: ReplicaManager.maybeStartTransactionVerificationForPartitions, handleProduceAppend,
AddPartitionsToTxnManager of 3.9.1; TXN-8.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, TypeAlias

from engine.errors import ApiError, api_error
from engine.host.promise import Promise
from engine.kafka_errors import (
    CONCURRENT_TRANSACTIONS,
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    INVALID_PRODUCER_EPOCH,
    INVALID_TXN_STATE,
    NETWORK_EXCEPTION,
    NOT_COORDINATOR,
    NOT_ENOUGH_REPLICAS,
    PRODUCER_FENCED,
    TRANSACTION_ABORTABLE,
    kafka_error,
)
from engine.log.producer_state import TransactionNotVerified
from engine.log.transaction_verifications import Verification
from engine.model import TopicPartition
from engine.replication.errors import NotLeaderOrFollower
from engine.replication.partition import Partition

_RETRIED = frozenset(
    (
        CONCURRENT_TRANSACTIONS,
        NETWORK_EXCEPTION,
        COORDINATOR_LOAD_IN_PROGRESS,
        COORDINATOR_NOT_AVAILABLE,
        NOT_COORDINATOR,
    )
)


class TransactionalBatch(NamedTuple):
    """The fields of a batch that identify its transaction."""

    producer_id: int
    producer_epoch: int
    base_sequence: int


#: Requests the coordinator of a transactional id to verify that partitions are in the transaction
#: of a producer and its epoch; promises an error code for each, none if it cannot verify.
VerifyWithCoordinator: TypeAlias = Callable[
    [str, int, int, Collection[TopicPartition]], Promise[dict[TopicPartition, int]]
]


class NotVerified(ApiError):
    """A transactional batch may not be written; has the message for its client."""


class LeaderVerification(NamedTuple):
    """A verification, and the leader epoch in which it was requested."""

    verification: Verification
    leader_epoch: int


class Verified(NamedTuple):
    """The result of a verification: errors of refused partitions, and verified partitions."""

    errors: dict[TopicPartition, ApiError]
    verifications: dict[TopicPartition, LeaderVerification]


class TransactionVerifier:
    """Verifies with coordinators that transactional batches belong to open transactions."""

    def __init__(
        self,
        find: Callable[[TopicPartition], Partition],
        verify_with_coordinator: VerifyWithCoordinator,
        is_enabled: Callable[[], bool],
    ) -> None:
        """Create the verifier; `find` returns a partition of this broker or raises an ApiError.

        `is_enabled` returns True if partitions are verified
        (transaction.partition.verification.enable).
        """
        self._find = find
        self._verify_with_coordinator = verify_with_coordinator
        self._is_enabled = is_enabled

    def verify(
        self,
        transactional_id: str,
        batches: Mapping[TopicPartition, TransactionalBatch],
        *,
        knows_abortable: bool,
    ) -> Promise[Verified]:
        """Promise which transactional batches may be appended, and the errors of the others.

        It asks the coordinator whether the transaction has the partitions; it is kept at once if
        none needs verification. All batches have the same producer. `knows_abortable` is True if
        the client knows TRANSACTION_ABORTABLE.
        """
        if not self._is_enabled():
            return Promise.of(Verified({}, {}))
        errors: dict[TopicPartition, ApiError] = {}
        verifications: dict[TopicPartition, LeaderVerification] = {}
        # 1
        for key, batch in batches.items():
            try:
                partition = self._find(key)
                begun = partition.begin_verification(*batch)
            except ApiError as error:
                errors[key] = error
                continue
            if begun is not None:
                verifications[key] = LeaderVerification(begun, partition.leader_epoch)
        if not verifications:
            return Promise.of(Verified(errors, {}))
        # 2
        producer_id, epoch, _ = next(iter(batches.values()))
        answer = self._verify_with_coordinator(transactional_id, producer_id, epoch, verifications)

        def move_errors(codes: dict[TopicPartition, int]) -> Verified:
            """Move each partition with an error code from `verifications` to `errors`."""
            for key, code in codes.items():
                if code:
                    errors[key] = _error(code, knows_abortable=knows_abortable)
                    del verifications[key]
            return Verified(errors, verifications)

        return answer.then(move_errors)

    def check(
        self, verified: Verified, batches: Mapping[TopicPartition, TransactionalBatch]
    ) -> dict[TopicPartition, ApiError]:
        """Return the errors of verified batches that may not be appended now, by partition.

        Called directly before the append: a partition's state may have changed since `verify`.
        """
        # 3
        errors = dict(verified.errors)
        for key, requested in verified.verifications.items():
            try:
                _check_still_verified(self._find(key), requested, batches[key])
            except ApiError as error:
                errors[key] = error
        return errors


def _check_still_verified(
    partition: Partition, requested: LeaderVerification, batch: TransactionalBatch
) -> None:
    """Raise an ApiError if a verified batch may not be appended now.

    The partition's leader or the producer's state has changed since the verification began.
    """
    partition.ensure_serves(None, is_leader_required=True)
    producers = partition.log.producers
    try:
        producers.check_verified(batch.producer_id, requested.verification, batch.base_sequence)
    except TransactionNotVerified as error:
        if partition.leader_epoch == requested.leader_epoch:
            raise
        # This broker was a follower meanwhile, which clears verifications: the client retries.
        reason = "the partition had another leader while its transaction was verified"
        raise NotLeaderOrFollower(partition.topic_partition, reason) from error


def _error(code: int, *, knows_abortable: bool) -> ApiError:
    """Return the error of a batch in a Produce response for the coordinator's code.

    `knows_abortable`: the client knows TRANSACTION_ABORTABLE.
    """
    if code == PRODUCER_FENCED:
        code = INVALID_PRODUCER_EPOCH
    elif code == TRANSACTION_ABORTABLE and not knows_abortable:
        code = INVALID_TXN_STATE
    if code == INVALID_TXN_STATE:
        return NotVerified(code, "Partition was not added to the transaction")
    if code in _RETRIED:
        return NotVerified(
            NOT_ENOUGH_REPLICAS,
            "Unable to verify the partition has been added to the transaction. "
            f"Underlying error: {kafka_error(code).name}",
        )
    return api_error(code)
