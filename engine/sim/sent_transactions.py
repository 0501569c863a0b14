"""Transactions as known to their producers, and the rules that receive their events."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, Protocol

from engine.model import TopicPartition


class Ids(NamedTuple):
    """The producer id and epoch of an instance of a transactional id."""

    producer_id: int
    producer_epoch: int


class Fence(NamedTuple):
    """A partition that refuses earlier instances, with its leader's epoch at that time."""

    partition: TopicPartition
    leader_epoch: int


class SentOutcome(Enum):
    """The outcome of a transaction as its producer knows it."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"
    #: EndTxn had an attempt without an answer, and a later one was refused.
    UNKNOWN = "unknown"


class Copied(NamedTuple):
    """Offsets of a partition that a transaction copied; it commits `next_offset` for the group."""

    group_id: str
    partition: TopicPartition
    #: What was committed before; 0 for nothing.
    first_offset: int
    next_offset: int


class SentTransaction:
    """One transaction: its batches, commits and outcome."""

    __slots__ = ("accepted", "copied", "name", "outcome", "producer_epoch", "producer_id", "sent")

    def __init__(self, name: str, producer_id: int, producer_epoch: int) -> None:
        """Begin as open; `name` is unique in the run."""
        self.name = name
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        #: How the producer believes that the transaction has ended.
        self.outcome = SentOutcome.OPEN
        #: Numbers of records that were sent, and of those that leaders accepted, by partition.
        self.sent: dict[TopicPartition, set[int]] = {}
        self.accepted: dict[TopicPartition, set[int]] = {}
        #: The range that the transaction copies; None if it copies nothing.
        self.copied: Copied | None = None

    def __str__(self) -> str:
        return f"{self.name} of {self.producer_id}/{self.producer_epoch}"


class TransactorEvents(Protocol):
    """Receives the events of transactional producers: transactions, fences, broken rules."""

    def record(self, subject: str, text: str) -> None:
        """Take note of something that a reader of the trace wants to know."""
        ...

    def began(self, transaction: SentTransaction) -> None:
        """Take note of a transaction that begins."""
        ...

    def initialized(self, transactional_id: str, ids: Ids) -> None:
        """Take note of what InitProducerId has given to an instance."""
        ...

    def fence_of(
        self, transactional_id: str, ids: Ids, partition: TopicPartition | None
    ) -> Fence | None:
        """Return the fence that must refuse an instance's request, None for the latest instance.

        Without `partition` it is that of the `__transaction_state` partition of the transactional
        id.
        """
        ...

    def served_fenced(self, fence: Fence, host: str, request_name: str) -> None:
        """Note the success of a request of an instance that was not the latest."""
        ...

    def broke(self, rule: str, text: str, partition: TopicPartition | None) -> None:
        """Take note of a broken promise to a client."""
        ...
