"""Writers of a copy: exactly once in transactions, or at least once without them.

| | exactly once | at least once |
|---|---|---|
| how far the source is copied | committed with the records | a line of the journal behind them |
| a death between | readers of committed records see nothing | what is behind the line comes twice |
| rights at the destination | the transactional id, the group | – |

Offsets of the source are committed at the destination, for a group that has the copy's name and the
partitions of the destination: so they are part of the transaction that has the records.

A process that goes on fences the one before it (InitProducerId), has its open transaction ended,
and then reads the offsets: these offsets are final. `copy_resumption` holds it against the journal,
which has the first position of each partition that was committed, and its end.

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
from engine.copying.copy_resumption import resumed_positions
from engine.copying.group_translation import GroupTranslation
from engine.errors import EngineError
from engine.model import TopicPartition

_TIMEOUT_MS: Final = 60_000


class NotCopied(EngineError):
    """A record was not stored at the destination."""

    def __init__(self, partition: TopicPartition, offset: int, cause: EngineError) -> None:
        """Exit code and hint are those of `cause`."""
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
    """The destination stored records again, and does not say where: groups cannot be translated."""

    hint = "run the same command again: it goes on behind what is committed"

    def __init__(self, partition: TopicPartition) -> None:
        super().__init__(f"{partition}: the broker does not say at which offset it stored a batch")
        self.partition = partition


class CopyWriter(Protocol):
    """Stores records, and then how far the source is copied."""

    def positions(self) -> dict[TopicPartition, int]:
        """Return the next offset of each partition of the source that is not copied."""
        ...

    def add(self, record: OutgoingRecord, offset: int) -> None:
        """Take a record, which has this offset at the source."""
        ...

    def poll(self) -> None:
        """Send what is due; raises NotCopied."""
        ...

    def commit(self, positions: Mapping[TopicPartition, int]) -> None:
        """Have all records stored, and then the positions; raises NotCopied."""
        ...

    def finish(self) -> None:
        """End, once all is committed."""
        ...

    def abandon(self) -> None:
        """Take back what is not committed, as far as the destination can be reached."""
        ...


class ExactlyOnceWriter:
    """Writes in transactions, which have the offsets of the source in them."""

    def __init__(
        self,
        client: KafkaClient,
        plan: TopicCopy,
        journal: CopyJournal,
        stored: Mapping[TopicPartition, int],
        options: ProducerOptions,
        notes: ProducerCallbacks | None = None,
    ) -> None:
        """`stored` are the positions that the journal has, by source partition."""
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
        #: Committed offsets of groups that are still to be translated; empty until the positions
        #: are known.
        self._translation = GroupTranslation((), {})
        #: Results of the open transaction; they count once it is committed.
        self._results: list[BatchResult] = []

    def positions(self) -> dict[TopicPartition, int]:
        """Fence an earlier process, abort its transaction, and return where to resume."""
        self._producer.init()
        committed = committed_offsets(self._client, self._plan.name, self._from)
        known = {self._from[there]: offset for there, offset in committed.items()}
        positions = resumed_positions(self._client, self._plan, known, self._stored)
        self._translation = GroupTranslation(self._plan.translated_offsets(), positions)
        return positions

    def add(self, record: OutgoingRecord, offset: int) -> None:
        """Take a record of the open transaction, which begins with the first one."""
        self._begin()
        self._producer.add(record, offset)

    def _begin(self) -> None:
        """Begin a transaction, unless one is open."""
        if self._producer.phase is not TransactionPhase.OPEN:
            self._producer.begin()

    def poll(self) -> None:
        """Send what is due."""
        self._check_results(self._producer.poll(0))

    def _check_results(self, results: Iterable[BatchResult]) -> None:
        """Raise the error of a batch; keep results for the translation of offsets."""
        for result in results:
            _check(result, self._from)
            if self._translation.is_needed:
                self._results.append(result)

    def commit(self, positions: Mapping[TopicPartition, int]) -> None:
        """Commit the records, the positions, and the offsets of groups that they lead to."""
        self._begin()
        self._check_results(self._producer.flush())
        self._translate()
        self._settle(positions)
        self._send_offsets(self._plan.name, positions)
        for group_id, offsets in self._translation.take().items():
            self._send_offsets(group_id, offsets)
        self._producer.commit()
        self._note(positions)

    def _note(self, positions: Mapping[TopicPartition, int]) -> None:
        """Record in the journal which partitions got a first position or reached their end.

        This must come after the commit: a resume takes a noted end for copied, and raises
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
        """Add offsets to the transaction, for the destination's names of the partitions."""
        there = {self._to[key]: offset for key, offset in offsets.items()}
        self._producer.send_offsets(GroupMembership(group_id), there)

    def _translate(self) -> None:
        """Pass on where source offsets were stored; raises OffsetUnknown."""
        results, self._results = self._results, []
        for result in sorted(results, key=lambda one: one.batch.order):
            partition = result.batch.partition
            if result.base_offset < 0:
                raise OffsetUnknown(partition)
            offsets = list(result.batch.places)
            self._translation.stored(self._from[partition], offsets, result.base_offset)

    def _settle(self, positions: Mapping[TopicPartition, int] | None) -> None:
        """Translate group offsets beyond all copied records to the destination's log end offset."""
        unseen = {self._to[key]: LATEST for key in self._translation.unseen(positions)}
        ends: dict[TopicPartition, int] = {}
        for there, found in list_offsets(self._client, unseen).items() if unseen else ():
            if isinstance(found, EngineError):
                raise found
            ends[self._from[there]] = found.offset
        self._translation.settle(positions, ends)

    def finish(self) -> None:
        """Commit group offsets that lie after all copied records."""
        if not self._translation.is_needed:
            return
        self._settle(None)
        self._producer.begin()
        for group_id, offsets in self._translation.take().items():
            self._send_offsets(group_id, offsets)
        self._producer.commit()

    def abandon(self) -> None:
        """Abort the open transaction, so that it holds up no readers until its timeout."""
        if self._producer.phase in (TransactionPhase.OPEN, TransactionPhase.TO_ABORT):
            with suppress(EngineError):
                self._producer.abort()


class AtLeastOnceWriter:
    """Writes without transactions; its progress is kept in the journal."""

    def __init__(
        self,
        client: KafkaClient,
        plan: TopicCopy,
        journal: CopyJournal,
        stored: Mapping[TopicPartition, int],
        options: ProducerOptions,
        notes: ProducerCallbacks | None = None,
    ) -> None:
        """`stored` are the positions that the journal has, by source partition."""
        self._client = client
        self._plan = plan
        #: Source of each destination partition.
        self._from = {there: here for here, there in plan.destinations().items()}
        self._journal = journal
        self._stored = stored
        self._producer = Producer(client, options, notes)

    def positions(self) -> dict[TopicPartition, int]:
        """Return where the journal says to go on."""
        return resumed_positions(self._client, self._plan, self._stored, self._stored)

    def add(self, record: OutgoingRecord, offset: int) -> None:
        """Take a record."""
        self._producer.add(record, offset)

    def poll(self) -> None:
        """Send what is due."""
        self._check_results(self._producer.poll(0))

    def _check_results(self, results: Iterable[BatchResult]) -> None:
        """Raise NotCopied for a batch that the destination has refused."""
        for result in results:
            _check(result, self._from)

    def commit(self, positions: Mapping[TopicPartition, int]) -> None:
        """Note the positions once all records are stored."""
        self._check_results(self._producer.flush())
        self._journal.stored(positions)

    def finish(self) -> None:
        """Do nothing: there are no groups."""

    def abandon(self) -> None:
        """Do nothing: what is stored stays, and comes again."""


def _check(result: BatchResult, sources: Mapping[TopicPartition, TopicPartition]) -> None:
    """Raise NotCopied, with the first source offset of the batch, if it was refused."""
    if result.error is not None:
        offset = next(iter(result.batch.places))
        raise NotCopied(sources[result.batch.partition], offset, result.error)
