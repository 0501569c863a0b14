"""Writers of a copy: exactly once with transactions, or at least once without them.

| | exactly once | at least once |
|---|---|---|
| progress in the source | committed with the records | a line in the journal after them |
| a crash in between | the transaction is aborted | the records after the line are copied twice |
| rights at the destination | the transactional id, the group | – |

The positions in the source are committed at the destination as offsets of a group with the copy's
name, for the destination's partitions; so they are in the same transaction as the records.

A process that resumes the copy fences the previous one (InitProducerId), which ends its open
transaction, and then reads the offsets, which cannot change any more. `copy_resumption` compares
them with the journal, which has the first committed position of each partition, and its end.

Source: KIP-98, KIP-447; MirrorMaker writes at least once, exactly once by Connect (KIP-618).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final, Protocol

from engine.client.batch_sender import BatchResult, is_too_large
from engine.client.blocking import KafkaClient
from engine.client.groups import committed_offsets
from engine.client.offsets import LATEST, list_offsets
from engine.client.producing import OutgoingRecord, Producer, ProducerCallbacks, ProducerOptions
from engine.client.transaction_calls import GroupMembership
from engine.client.transactional_producer import TransactionalProducer, TransactionPhase
from engine.copying.copy_journal import CopyJournal
from engine.copying.copy_plan import TopicCopy
from engine.copying.copy_resumption import find_resume_positions
from engine.copying.group_translation import GroupTranslation
from engine.errors import EngineError
from engine.model import TopicPartition

_TIMEOUT_MS: Final = 60_000


class NotCopied(EngineError):
    """A record was not stored at the destination."""

    def __init__(self, partition: TopicPartition, offset: int, cause: EngineError) -> None:
        """The exit code and the hint are those of `cause`, but for records that are too large."""
        super().__init__(f"offset {offset} of {partition} is not copied: {cause}")
        self.partition = partition
        self.offset = offset
        self.cause = cause
        self.hint = cause.hint
        if is_too_large(cause):
            self.hint = (
                "raise max.message.bytes of the topic at the destination (`kctl topics alter`), "
                "and run the same command again"
            )
        self.exit_code = getattr(cause, "exit_code", 1)


class OffsetUnknown(EngineError):
    """The destination has a batch already and does not return its offset, which groups need."""

    hint = "run the same command again: it continues after what is committed"

    def __init__(self, partition: TopicPartition) -> None:
        super().__init__(f"{partition}: the broker does not say at which offset it stored a batch")
        self.partition = partition


class CopyWriter(Protocol):
    """Writes records to the destination, and then the positions in the source."""

    def positions(self) -> dict[TopicPartition, int]:
        """Prepare the writer, and return the next offset to copy of each source partition."""
        ...

    def add(self, record: OutgoingRecord, offset: int) -> None:
        """Add a record to be sent to the destination; `offset` is its offset at the source."""
        ...

    def poll(self) -> None:
        """Send the batches that are ready, and process responses.

        Raises NotCopied if the destination refused a batch.
        """
        ...

    def commit(self, positions: Mapping[TopicPartition, int]) -> None:
        """Wait until all added records are stored, then store the source positions after them.

        Raises NotCopied if the destination refused a batch.
        """
        ...

    def finish(self) -> None:
        """Complete the copy, once all its records are committed."""
        ...

    def abandon(self) -> None:
        """Abort what is not committed, if the destination can be reached."""
        ...


class ExactlyOnceWriter:
    """Writes in transactions that contain the positions in the source."""

    def __init__(
        self,
        client: KafkaClient,
        plan: TopicCopy,
        journal: CopyJournal,
        stored: Mapping[TopicPartition, int],
        options: ProducerOptions,
        notes: ProducerCallbacks | None = None,
    ) -> None:
        """`stored` are the positions in the journal, by source partition."""
        self._client = client
        self._plan = plan
        self._journal = journal
        self._stored = dict(stored)
        #: Destination of each source partition, and the reverse.
        self._to = plan.destinations()
        self._from = {there: here for here, there in self._to.items()}
        self._producer = TransactionalProducer(
            client, plan.name, options, notes, timeout_ms=_TIMEOUT_MS
        )
        #: Group offsets to translate; none until the positions are known.
        self._translation = GroupTranslation((), {})
        #: Results of the open transaction, for the translation at its commit.
        self._results: list[BatchResult] = []

    def positions(self) -> dict[TopicPartition, int]:
        """Initialize the transactional producer; return the next source offset of each partition.

        InitProducerId fences an earlier process of the copy and ends its open transaction, so that
        the positions it committed are final.
        """
        self._producer.init()
        committed = committed_offsets(self._client, self._plan.name, self._from)
        known = {self._from[there]: offset for there, offset in committed.items()}
        positions = find_resume_positions(self._client, self._plan, known, self._stored)
        self._translation = GroupTranslation(self._plan.translated_offsets(), positions)
        return positions

    def add(self, record: OutgoingRecord, offset: int) -> None:
        """Send a record in the transaction; the first record begins it.

        `offset` is that of the record at the source.
        """
        self._begin()
        self._producer.add(record, offset)

    def _begin(self) -> None:
        """Begin a transaction, unless one is open."""
        if self._producer.phase is not TransactionPhase.OPEN:
            self._producer.begin()

    def poll(self) -> None:
        """Send the batches that are ready, and process responses.

        Raises NotCopied if the destination refused a batch.
        """
        self._check_results(self._producer.poll(0))

    def _check_results(self, results: Iterable[BatchResult]) -> None:
        """Raise NotCopied if the destination refused a batch.

        Results are kept until the commit while group offsets remain to be translated.
        """
        for result in results:
            _check(result, self._from)
            if self._translation.is_needed:
                self._results.append(result)

    def commit(self, positions: Mapping[TopicPartition, int]) -> None:
        """Commit a transaction with the records, the source positions and translated group offsets.

        `positions` are the next source offsets to copy. They are committed as the offsets of a
        group named after the copy.
        """
        self._begin()
        self._check_results(self._producer.flush())
        self._record_stored()
        self._translate_at_ends(positions)
        self._send_offsets(self._plan.name, positions)
        for group_id, offsets in self._translation.take().items():
            self._send_offsets(group_id, offsets)
        self._producer.commit()
        self._journal_positions(positions)

    def _journal_positions(self, positions: Mapping[TopicPartition, int]) -> None:
        """Write each partition's first position, and one at the end of its range, to the journal.

        This must come after the commit: a resumed copy takes a noted end as complete, and raises
        ProgressLost for another noted position that is above the committed one.
        """
        ranges = self._plan.ranges
        new = {
            key: offset
            for key, offset in positions.items()
            if key not in self._stored or offset >= ranges[key].end
        }
        if new:
            self._journal.stored(new)
            self._stored |= new

    def _send_offsets(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Add offsets of a group to the transaction, for the destination partitions.

        `offsets` are given by source partition.
        """
        there = {self._to[key]: offset for key, offset in offsets.items()}
        self._producer.send_offsets(GroupMembership(group_id), there)

    def _record_stored(self) -> None:
        """Pass the destination offsets of stored batches to the translation of group offsets.

        They are passed in the order of sending. Raises OffsetUnknown if the broker did not return a
        batch's base offset.
        """
        results, self._results = self._results, []
        for result in sorted(results, key=lambda one: one.batch.order):
            partition = result.batch.partition
            if result.base_offset < 0:
                raise OffsetUnknown(partition)
            offsets = list(result.batch.places)
            self._translation.stored(self._from[partition], offsets, result.base_offset)

    def _translate_at_ends(self, positions: Mapping[TopicPartition, int] | None) -> None:
        """Translate group offsets that no copied record follows to the end of the copied records.

        These are the ones before `positions`; None means all that remain. A partition without any
        copied record ends at the destination's log end offset.
        """
        unseen = {self._to[key]: LATEST for key in self._translation.unseen(positions)}
        ends: dict[TopicPartition, int] = {}
        for there, found in list_offsets(self._client, unseen).items() if unseen else ():
            if isinstance(found, EngineError):
                raise found
            ends[self._from[there]] = found.offset
        self._translation.settle(positions, ends)

    def finish(self) -> None:
        """Commit, in a last transaction, the group offsets that are after all copied records."""
        if not self._translation.is_needed:
            return
        self._translate_at_ends(None)
        self._producer.begin()
        for group_id, offsets in self._translation.take().items():
            self._send_offsets(group_id, offsets)
        self._producer.commit()

    def abandon(self) -> None:
        """Abort the open transaction, which would block readers until its timeout."""
        if self._producer.phase in (TransactionPhase.OPEN, TransactionPhase.TO_ABORT):
            with suppress(EngineError):
                self._producer.abort()


class AtLeastOnceWriter:
    """Writes without transactions, with the progress in the journal."""

    def __init__(
        self,
        client: KafkaClient,
        plan: TopicCopy,
        journal: CopyJournal,
        stored: Mapping[TopicPartition, int],
        options: ProducerOptions,
        notes: ProducerCallbacks | None = None,
    ) -> None:
        """`stored` are the positions in the journal, by source partition."""
        self._client = client
        self._plan = plan
        #: Source of each destination partition.
        self._from = {there: here for here, there in plan.destinations().items()}
        self._journal = journal
        self._stored = stored
        self._producer = Producer(client, options, notes)

    def positions(self) -> dict[TopicPartition, int]:
        """Return the next source offsets in the journal, after a check against the destination."""
        return find_resume_positions(self._client, self._plan, self._stored, self._stored)

    def add(self, record: OutgoingRecord, offset: int) -> None:
        """Add a record to the producer; its offset at the source is ignored."""
        self._producer.add(record, offset)

    def poll(self) -> None:
        """Send the batches that are ready, and process responses.

        Raises NotCopied if the destination refused a batch.
        """
        self._check_results(self._producer.poll(0))

    def _check_results(self, results: Iterable[BatchResult]) -> None:
        """Raise NotCopied for a batch that the destination refused."""
        for result in results:
            _check(result, self._from)

    def commit(self, positions: Mapping[TopicPartition, int]) -> None:
        """Write the positions to the journal once all records are stored."""
        self._check_results(self._producer.flush())
        self._journal.stored(positions)

    def finish(self) -> None:
        """Do nothing: groups are copied only exactly once."""

    def abandon(self) -> None:
        """Do nothing: records after the journal's positions will be copied again."""


def _check(result: BatchResult, sources: Mapping[TopicPartition, TopicPartition]) -> None:
    """Raise NotCopied with the batch's first source offset if the batch was refused."""
    if result.error is not None:
        offset = next(iter(result.batch.places))
        raise NotCopied(sources[result.batch.partition], offset, result.error)
