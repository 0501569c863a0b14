"""A batch of a producer: its records, their places in the input, and its parts if it is split.

`InputPlaces` has the input line of each record, so that an error names the line of a record that
cannot be stored. A run of consecutive lines is stored as one range.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.host.ports import Buffer
from engine.model import TopicPartition
from engine.records.builder import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    BatchBuilder,
    BatchSettings,
)
from engine.records.record import NO_SEQUENCE
from engine.records.view import batches_in

#: The place of a record without an input line.
NO_PLACE = 0


class InputPlaces:
    """The lines that records came from, in the records' order."""

    __slots__ = ("_runs", "count")

    def __init__(self) -> None:
        self._runs: list[Sequence[int]] = []
        self.count = 0

    def __iter__(self) -> Iterator[int]:
        """Yield the place in the producer's input of each record, in the order of the batch."""
        for run in self._runs:
            yield from run

    def append(self, place: int) -> None:
        """Add the place of one more record, after the others."""
        self.extend(range(place, place + 1))

    def extend(self, places: Sequence[int]) -> None:
        """Add the places of several more records; consecutive places are stored as one range."""
        if not places:
            return
        last = self._runs[-1] if self._runs else None
        if isinstance(places, range) and isinstance(last, range) and last.stop == places.start:
            self._runs[-1] = range(last.start, places.stop)
        else:
            self._runs.append(places)
        self.count += len(places)


class OutgoingBatch:
    """Records for one partition, which a broker stores all or none of.

    `order` sorts the batches of a partition; the parts of a split batch sort in its place.
    """

    __slots__ = (
        "_builder",
        "_built",
        "base_sequence",
        "is_doubtful",
        "opened_ms",
        "order",
        "partition",
        "places",
    )

    def __init__(
        self,
        partition: TopicPartition,
        settings: BatchSettings,
        opened_ms: int,
        order: tuple[int, ...],
    ) -> None:
        """Create an empty batch; `opened_ms` (monotonic) is when its linger time begins."""
        self.partition = partition
        self.opened_ms = opened_ms
        self.order = order
        #: The place of each record in the producer's input, in order.
        self.places = InputPlaces()
        #: None until the batch is sent with a producer id for the first time; then fixed.
        self.base_sequence: int | None = None
        #: Whether the batch may have been stored: it was sent, and no response has denied it.
        self.is_doubtful = False
        self._builder = BatchBuilder(settings)
        #: The batch's bytes, None until built and after a change of the settings.
        self._built: bytearray | None = None

    @property
    def builder(self) -> BatchBuilder:
        """Return the builder of the batch's bytes, to which records are added."""
        return self._builder

    @property
    def record_count(self) -> int:
        """Return the number of records in the batch."""
        return self._builder.record_count

    @property
    def size_bytes(self) -> int:
        """Return the size of the batch before compression."""
        return self._builder.uncompressed_size_bytes

    def number(
        self,
        identity: tuple[int, int] | None,
        base_sequence: int,
        *,
        is_transactional: bool = False,
    ) -> None:
        """Set the producer id and epoch (`identity`) and the sequence of the first record.

        `identity` None: the producer is not idempotent, and the batch gets no sequence. Called
        before the batch is sent for the first time.
        """
        producer_id, epoch = identity or (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
        self.base_sequence = base_sequence if identity else None
        self._builder.settings = self._builder.settings._replace(
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=base_sequence if identity else NO_SEQUENCE,
            is_transactional=is_transactional,
        )
        self._built = None

    def wire_bytes(self) -> Buffer:
        """Return the encoded batch; the same bytes each time until `number` is called again."""
        if self._built is None:
            self._built = self._builder.build()
        return self._built

    def split(self, limit_bytes: int) -> list[OutgoingBatch]:
        """Return batches with the same records, each at most `limit_bytes` before compression.

        A larger record gets its own batch. The sequences of the parts are consecutive.
        Source: `ProducerBatch.split`.
        """
        parts: list[OutgoingBatch] = []
        (view,) = batches_in(memoryview(self.wire_bytes()), allow_partial_tail=False)
        part: OutgoingBatch | None = None
        for record, place in zip(view.records(), self.places, strict=True):
            content = (record.timestamp_ms, record.key, record.value, record.headers)
            if part is None or not part.builder.has_room_for(*content, limit_bytes=limit_bytes):
                part = self._empty_part(len(parts), record.sequence)
                parts.append(part)
            part.builder.append(*content)
            part.places.append(place)
        return parts

    def _empty_part(self, index: int, sequence: int) -> OutgoingBatch:
        """Return an empty batch for a part of this batch's records, from `sequence` on.

        It sorts in this batch's place, after the parts with a lower `index`.
        """
        settings = self._builder.settings
        has_producer = self.base_sequence is not None
        if has_producer:
            settings = settings._replace(base_sequence=sequence)
        part = OutgoingBatch(self.partition, settings, self.opened_ms, (*self.order, index))
        part.base_sequence = sequence if has_producer else None
        part.is_doubtful = self.is_doubtful
        return part
