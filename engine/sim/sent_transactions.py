"""Transactions as their producers know them, and the interface that receives their events."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, Protocol

from engine.model import TopicPartition


class Ids(NamedTuple):
    """The producer id and epoch of an instance of a transactional id."""

    producer_id: int
    producer_epoch: int


class Fence(NamedTuple):
    """A partition that rejects earlier instances, with its leader epoch at that time."""

    partition: TopicPartition
    leader_epoch: int


class SentOutcome(Enum):
    """The outcome of a transaction as its producer knows it."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"
    #: An attempt of EndTxn had no response, and a later one was rejected.
    UNKNOWN = "unknown"


class Copied(NamedTuple):
    """The offset range of a partition that a transaction copies; it commits `next_offset`."""

    group_id: str
    partition: TopicPartition
    #: The offset that was committed before; 0 if there was none.
    first_offset: int
    next_offset: int


class SentTransaction:
    """One transaction: its batches, commits and outcome."""

    __slots__ = ("accepted", "copied", "name", "outcome", "producer_epoch", "producer_id", "sent")

    def __init__(self, name: str, producer_id: int, producer_epoch: int) -> None:
        """Create an open transaction; `name` is unique in the run."""
        self.name = name
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        #: The outcome as the producer knows it.
        self.outcome = SentOutcome.OPEN
        #: Numbers of the records that were sent, and that leaders accepted, by partition.
        self.sent: dict[TopicPartition, set[int]] = {}
        self.accepted: dict[TopicPartition, set[int]] = {}
        #: The range that the transaction copies; None if it copies nothing.
        self.copied: Copied | None = None

    def __str__(self) -> str:
        return f"{self.name} of {self.producer_id}/{self.producer_epoch}"


class TransactorEvents(Protocol):
    """Receives the events of transactional producers: transactions, fences, broken rules."""

    def record(self, subject: str, text: str) -> None:
        """Add a line to the trace."""
        ...

    def record_begin(self, transaction: SentTransaction) -> None:
        """Record the start of a transaction."""
        ...

    def record_ids(self, transactional_id: str, ids: Ids) -> None:
        """Record the producer id and epoch that InitProducerId returned to an instance."""
        ...

    def fence_of(
        self, transactional_id: str, ids: Ids, partition: TopicPartition | None
    ) -> Fence | None:
        """Return the fence that must reject an instance's request; None for the latest instance.

        Without `partition` it is that of the `__transaction_state` partition of the transactional
        id.
        """
        ...

    def check_fenced_success(self, fence: Fence, host: str, request_name: str) -> None:
        """Check that a request may succeed whose instance was fenced when it was sent.

        `host` is the broker that responded.
        """
        ...

    def broke(self, rule: str, text: str, partition: TopicPartition | None) -> None:
        """Record a rule that a response to a client broke."""
        ...
