"""One instance of the exactly-once demo: it consumes, transforms and produces in transactions.

Each transaction:

1. Begin; add the transformed records, each to the partition of its input record.
2. Send the next offsets with the member's id and generation. The coordinator refuses them if the
   group has a newer generation without this member: then the transaction fails.
3. Commit.

| failure | reaction |
|---|---|
| anything in the transaction | abort it; the consumer goes back to the committed offsets |
| the group has another generation | the same, and the member joins again |
| the producer is fenced | the same with a new producer, which ends the old one's transaction |
| commit or abort gets no response | it is sent again |

Source: KIP-447; ExactlyOnceMessageProcessor of Kafka's examples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.errors import TimedOut, Unreachable
from engine.client.fetching import ConsumedRecords, FetchOptions
from engine.client.group_consumer import GroupConsumer
from engine.client.member_session import MemberSettings
from engine.client.producing import OutgoingRecord
from engine.client.transaction_calls import GroupMembership
from engine.client.transactional_producer import (
    ProducerFenced,
    TransactionalProducer,
    TransactionFailed,
    TransactionPhase,
)
from engine.demo.copied_records import INSTANCE_HEADER, transformed
from engine.errors import ApiError
from engine.model import TopicPartition
from engine.records.record import Header
from engine.records.record_run import RecordRun

#: As many as a poll of the Java consumer returns by default.
RECORDS_PER_TRANSACTION: Final = 500
#: The minimum that brokers allow, so that a dead member is noticed early.
SESSION_TIMEOUT_MS: Final = 6_000
_HEARTBEAT_MS: Final = 500
_REBALANCE_MS: Final = 30_000
TRANSACTION_TIMEOUT_MS: Final = 10_000
_FETCH_WAIT_MS: Final = 100
#: Small, so that the records of a poll are processed well before the next heartbeat.
_FETCH_BYTES: Final = 1 << 16
_END_ATTEMPTS_MAX: Final = 5


class CopyNames(NamedTuple):
    """The topics, group and transactional id of an instance."""

    input_topic: str
    output_topic: str
    group_id: str
    transactional_id: str
    instance: int


class CopyCounts(NamedTuple):
    """An instance's counts of records and transactions, and its partitions."""

    records: int = 0
    committed: int = 0
    aborted: int = 0
    partitions: tuple[int, ...] = ()


class Part(NamedTuple):
    """The records of one partition in one transaction, and the offset after them."""

    partition: TopicPartition
    run: RecordRun
    next_offset: int


class CopyingInstance:
    """A member of the group, with a transactional producer."""

    def __init__(self, connect: Callable[[], KafkaClient], names: CopyNames) -> None:
        """`connect` returns a new client; it is called for the consumer and for the producer."""
        self._names = names
        #: Header of each copied record, which names this instance.
        self._headers: tuple[Header, ...] = ((INSTANCE_HEADER, b"%d" % names.instance),)
        #: Client of the producer, also of the one that replaces a fenced producer.
        self._producer_client = connect()
        self._producer = self._new_producer()
        # Ends an open transaction of an earlier process, which would block readers.
        self._producer.init()
        self._consumer = GroupConsumer(
            connect(),
            MemberSettings(
                names.group_id,
                session_timeout_ms=SESSION_TIMEOUT_MS,
                heartbeat_interval_ms=_HEARTBEAT_MS,
                max_poll_interval_ms=_REBALANCE_MS,
            ),
            [names.input_topic],
            start_of=lambda partitions: dict.fromkeys(partitions, 0),
            fetch=FetchOptions(
                read_committed=True,
                max_wait_ms=_FETCH_WAIT_MS,
                partition_max_bytes=_FETCH_BYTES,
            ),
            commits=False,
        )
        self._counts = CopyCounts()

    @property
    def counts(self) -> CopyCounts:
        """Return the counts so far, with the partitions that are assigned now."""
        partitions = tuple(key.partition for key in self._consumer.session.partitions)
        return self._counts._replace(partitions=partitions)

    def step(self, wait_ms: int) -> None:
        """Consume the records that arrive within about `wait_ms`, and copy them in transactions.

        After an aborted transaction the other records are left for the next step. Errors: those of
        the group, of reading, and of brokers that remain unreachable.
        """
        for parts in split_into_transactions(self._consumer.poll(wait_ms)):
            if not self._copy_transaction(parts):
                return

    def close(self) -> None:
        """Leave the group; raises the errors of the request."""
        self._consumer.close()

    def _new_producer(self) -> TransactionalProducer:
        """Return a producer with this instance's transactional id, not initialized yet."""
        return TransactionalProducer(
            self._producer_client,
            self._names.transactional_id,
            timeout_ms=TRANSACTION_TIMEOUT_MS,
        )

    def _copy_transaction(self, parts: list[Part]) -> bool:
        """Copy records, and commit the consumer's offsets after them, in one transaction.

        Returns True if it was committed; False if it was aborted, after which they are consumed
        again.
        """
        try:
            self._producer.begin()
            for part in parts:
                for record in self.outgoing(part):
                    self._producer.add(record)
            offsets = {part.partition: part.next_offset for part in parts}
            self._producer.send_offsets(self._membership(), offsets)
            self._end_transaction(self._producer.commit)
        except (ProducerFenced, TransactionFailed) as error:
            self._abort_and_rewind(error)
            return False
        records = sum(part.run.record_count for part in parts)
        self._counts = self._counts._replace(
            records=self._counts.records + records, committed=self._counts.committed + 1
        )
        return True

    def _membership(self) -> GroupMembership:
        """Return the member's id and generation, to be sent with the transaction's offsets.

        By them the coordinator rejects offsets of a member that has lost its partitions.
        """
        session = self._consumer.session
        return GroupMembership(self._names.group_id, session.generation_id, session.member_id)

    def outgoing(self, part: Part) -> Iterator[OutgoingRecord]:
        """Yield the output record of each consumed record, for the partition of the same number."""
        number = part.partition.partition
        for key, value in zip(part.run.keys, part.run.values, strict=True):
            copy = transformed(value or b"")
            yield OutgoingRecord(self._names.output_topic, key, copy, self._headers, None, number)

    def _abort_and_rewind(self, error: ProducerFenced | TransactionFailed) -> None:
        """Abort the transaction, and set the consumer back to its committed offsets.

        A producer that was fenced or cannot abort is replaced by a new one.
        """
        if self._producer.phase is TransactionPhase.TO_ABORT:
            try:
                self._end_transaction(self._producer.abort)
            except ProducerFenced:
                self._producer = self._new_producer()
        else:
            self._producer = self._new_producer()
        self._counts = self._counts._replace(aborted=self._counts.aborted + 1)
        if isinstance(error.cause, ApiError):
            self._consumer.session.rejoin_if_refused(error.cause.code)
        self._consumer.rewind()

    def _end_transaction(self, request: Callable[[], object]) -> None:
        """Call `request`, which commits or aborts, and repeat it if it fails.

        It is called up to `_END_ATTEMPTS_MAX` times; the last error is raised. A request without a
        response may have been executed: the coordinator then answers the repetition with success.
        """
        for attempt in range(_END_ATTEMPTS_MAX):
            try:
                request()
                return
            except (TimedOut, Unreachable, ApiError):
                if attempt == _END_ATTEMPTS_MAX - 1:
                    raise


def split_into_transactions(consumed: list[ConsumedRecords]) -> Iterator[list[Part]]:
    """Yield lists of consumed records, each for a transaction of at most RECORDS_PER_TRANSACTION.

    After all records the error of a partition that cannot be read is raised.
    """
    parts: list[Part] = []
    room = RECORDS_PER_TRANSACTION
    for records in consumed:
        for run in records.runs:
            start = 0
            while start < run.record_count:
                end = min(start + room, run.record_count)
                piece = run.slice(start, end)
                parts.append(Part(records.partition, piece, piece.offsets[-1] + 1))
                room -= end - start
                start = end
                if not room:
                    yield parts
                    parts, room = [], RECORDS_PER_TRANSACTION
    if parts:
        yield parts
    for records in consumed:
        if records.error is not None:
            raise records.error
