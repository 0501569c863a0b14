"""Logs whose offsets go wrong, written as recipes: what crashes, disks and bad copies leave.

A recipe is JSON, its files are the same bytes each time: the results of a real broker's recovery
are kept for them in tests/golden/recovery-tails. `make compare-recovery` asks one again.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from engine.log.directory.leader_epoch_checkpoint import EpochStart, encode_leader_epochs
from engine.naming import FileKind, SegmentFileName
from engine.records.builder import BatchBuilder, BatchSettings

#: Later than any clock the recipes meet: nothing is old enough to go.
TIME_MS = 1_900_000_000_000
INTERVALS_BYTES = (4096, 100)

_INDEX_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")


class Written(NamedTuple):
    """One batch: `value_bytes` of its only value, all its records at one time."""

    base_offset: int
    count: int
    value_bytes: int
    timestamp_ms: int
    epoch: int = 0
    producer_id: int = -1
    sequence: int = -1


class SegmentRecipe(NamedTuple):
    """One segment; `indexed` of its batches were there when its indexes were written.

    `flipped` is the batch with a wrong checksum, −1 for none; `tail` are bytes behind the last
    batch; `without` are the suffixes of files that are lost.
    """

    base_offset: int
    batches: tuple[Written, ...]
    indexed: int
    flipped: int = -1
    tail: str = ""
    without: tuple[str, ...] = ()


class LogRecipe(NamedTuple):
    """One partition directory as a crash has left it, and what its checkpoint says."""

    name: str
    kind: str
    interval_bytes: int
    recovery_point: int
    segments: tuple[SegmentRecipe, ...]


def recipe_from(row: list[Any]) -> LogRecipe:
    """Return what `json` has made lists of."""
    name, kind, interval_bytes, recovery_point, segments = row
    return LogRecipe(
        name,
        kind,
        interval_bytes,
        recovery_point,
        tuple(
            SegmentRecipe(
                base, tuple(Written(*batch) for batch in batches), indexed, flipped, tail, tuple(w)
            )
            for base, batches, indexed, flipped, tail, w in segments
        ),
    )


def files_of(recipe: LogRecipe) -> dict[str, bytes]:
    """Return the files of a partition directory by name."""
    files: dict[str, bytes] = {}
    for segment in recipe.segments:
        made = _segment_files(segment, recipe.interval_bytes)
        files |= {
            SegmentFileName(segment.base_offset, kind).name: content
            for kind, content in made.items()
            if kind.value not in segment.without
        }
    files["leader-epoch-checkpoint"] = encode_leader_epochs((EpochStart(0, 0),))
    return files


def bytes_of(batch: Written) -> bytes:
    """Return a batch's bytes."""
    builder = BatchBuilder(
        BatchSettings(
            base_offset=batch.base_offset,
            leader_epoch=batch.epoch,
            producer_id=batch.producer_id,
            producer_epoch=0 if batch.producer_id >= 0 else -1,
            base_sequence=batch.sequence,
        )
    )
    for number in range(batch.count):
        builder.append(batch.timestamp_ms, None, b"v" * batch.value_bytes if not number else b"")
    return bytes(builder.build())


def _segment_files(segment: SegmentRecipe, interval_bytes: int) -> dict[FileKind, bytes]:
    log, index, times = bytearray(), bytearray(), bytearray()
    largest, largest_offset, entry_at = -1, segment.base_offset, 0
    noted = -1
    for number, batch in enumerate(segment.batches):
        last_offset = batch.base_offset + batch.count - 1
        if number < segment.indexed:
            if batch.timestamp_ms > largest:
                largest, largest_offset = batch.timestamp_ms, last_offset
            if len(log) - entry_at > interval_bytes:
                index += _INDEX_ENTRY.pack(last_offset - segment.base_offset, len(log))
                if largest > noted:
                    times += _TIME_ENTRY.pack(largest, largest_offset - segment.base_offset)
                    noted = largest
                entry_at = len(log)
        content = bytearray(bytes_of(batch))
        if number == segment.flipped:
            content[-1] ^= 1
        log += content
    if largest > noted:
        times += _TIME_ENTRY.pack(largest, largest_offset - segment.base_offset)
    log += bytes.fromhex(segment.tail)
    return {
        FileKind.LOG: bytes(log),
        FileKind.INDEX: bytes(index),
        FileKind.TIMEINDEX: bytes(times),
    }


# Making them up

#: How offsets go wrong.
RECIPE_KINDS = (
    "repeat", "repeat-many", "overlap", "back", "to-base", "below-index", "late-time",
    "repeat-indexed",
)  # fmt: skip


def make_recipes(count: int, seed: int, *, lost_indexes: bool = False) -> Iterator[LogRecipe]:
    """Yield so many recipes; the same for the same seed.

    With `lost_indexes` a segment from the recovery point on lacks its .index, which makes a
    broker read it through while it is opened.
    """
    for number in range(count):
        source = random.Random(seed * 100_003 + number)
        interval = INTERVALS_BYTES[number % len(INTERVALS_BYTES)]
        kind = RECIPE_KINDS[number // len(INTERVALS_BYTES) % len(RECIPE_KINDS)]
        yield _Maker(source, interval).make(f"t{seed}x{number}", kind, lost_indexes=lost_indexes)


class _Maker:
    def __init__(self, source: random.Random, interval_bytes: int) -> None:
        self._source = source
        self._interval_bytes = interval_bytes
        self._next = 0
        self._time_ms = TIME_MS
        self._sequence = 0
        self._producer_id = 7 if source.random() < 0.3 else -1
        largest = source.choice((60, 300, 1500, 5000))
        self._value_bytes = lambda: source.randrange(largest)

    def make(self, name: str, kind: str, *, lost_indexes: bool) -> LogRecipe:
        source = self._source
        self._next = source.choice((0, 0, 0, 40))
        segment_count = source.choice((1, 1, 2, 3, 4))
        hurt = segment_count - 1 if source.random() < 0.6 else source.randrange(segment_count)
        segments = []
        for number in range(segment_count):
            base = self._next
            batches = [self._batch() for _ in range(source.randint(1, 14))]
            indexed = len(batches)
            flipped, tail = -1, ""
            if number == hurt:
                end = self._next
                batches += self._gone_wrong(kind, batches)
                if source.random() < 0.3:
                    batches += [self._batch() for _ in range(source.randint(1, 5))]
                if source.random() < 0.5:
                    indexed = len(batches) if kind.startswith("repeat") else indexed
                if source.random() < 0.15:
                    flipped = source.randrange(len(batches))
                if source.random() < 0.15:
                    tail = source.randbytes(source.randint(1, 40)).hex()
                self._next = max(self._next, end)
            without = (".index",) if lost_indexes and number == hurt else ()
            segments.append(SegmentRecipe(base, tuple(batches), indexed, flipped, tail, without))
        bases = [segment.base_offset for segment in segments]
        point = source.choice((0, 0, bases[-1], bases[hurt], bases[hurt] + 1))
        return LogRecipe(name, kind, self._interval_bytes, point, tuple(segments))

    def _batch(self, *, base: int | None = None, count: int | None = None) -> Written:
        source = self._source
        count = source.randint(1, 4) if count is None else count
        base = self._next if base is None else base
        self._time_ms += source.choice((0, 1, 5, -3))
        sequence = -1
        if self._producer_id >= 0:
            sequence, self._sequence = self._sequence, self._sequence + count
        self._next = base + count
        return Written(
            base, count, self._value_bytes(), self._time_ms, 0, self._producer_id, sequence
        )

    def _gone_wrong(self, kind: str, batches: list[Written]) -> list[Written]:
        source = self._source
        first, last = batches[0], batches[-1]
        if kind == "repeat":
            return [last] * source.randint(1, 3)
        if kind == "repeat-many":
            again = batches[-source.randint(1, len(batches)) :]
            return again * source.randint(1, 2)
        if kind == "repeat-indexed":
            return self._repeated_behind_entries(batches)
        if kind == "overlap":
            back = source.randint(1, 3)
            base = max(self._next - back, first.base_offset)
            return [self._batch(base=base, count=source.randint(1, 6))]
        if kind == "back":
            base = source.randint(first.base_offset, last.base_offset)
            self._next = base
            return [self._batch() for _ in range(source.randint(1, 6))]
        if kind == "to-base":
            self._next = first.base_offset
            return [self._batch(count=1) for _ in range(source.randint(1, 3))]
        if kind == "below-index":
            base = max(first.base_offset, last.base_offset - 2)
            one = self._batch(base=base, count=1)
            return [one._replace(value_bytes=self._interval_bytes), one, one]
        self._time_ms += 1000
        base = max(first.base_offset, last.base_offset - source.randint(0, 4))
        return [self._batch(base=base, count=1)._replace(epoch=source.choice((0, 1)))]

    def _repeated_behind_entries(self, batches: list[Written]) -> list[Written]:
        """Return batches that repeat earlier offsets, enough of them for an entry to fall due.

        What they repeat has entries of its own; the last ones may go on behind it.
        """
        source = self._source
        more = [self._batch() for _ in range(source.randint(3, 12))]
        grown = [
            batch._replace(value_bytes=self._interval_bytes // source.choice((1, 2, 5)))
            for batch in more
        ]
        again = grown[source.randrange(len(grown)) :] if source.random() < 0.5 else grown[-2:]
        return [*grown, *again * source.randint(1, 4)]
