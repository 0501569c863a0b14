"""Reading damaged bytes in every way there is: rows or typed errors, nothing else."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterable

from engine.errors import CorruptRecord, EngineError
from engine.records.batch import BatchView
from engine.records.codec import Codec
from engine.records.compression import decompress, decompress_into, decompress_prefix
from engine.records.control import control_type, parse_marker
from engine.records.legacy import LegacyBatch
from engine.records.record import Record
from engine.records.view import batch_at, batches_in

LIMIT_BYTES = 1 << 22
HEADER_FIELDS = (8, 12, 16, 17, 21, 22, 23, 27, 35, 43, 51, 53, 57)


def damaged(batch: bytes, chance: random.Random) -> bytes:
    """Return a batch with flipped, lost or added bytes, sometimes with its length set right."""
    data = bytearray(batch)
    kind = chance.randrange(6)
    at = chance.randrange(len(data))
    if kind <= 1:
        for _ in range(chance.choice((1, 1, 2, 8))):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    elif kind == 2:
        del data[at:]
    elif kind == 3:
        del data[at : at + chance.randrange(1, 9)]
    elif kind == 4:
        data[at:at] = chance.randbytes(chance.randrange(1, 9))
    else:
        field = chance.choice([f for f in HEADER_FIELDS if f < len(data)])
        data[field : field + 2] = chance.choice(
            (b"\xff\xff", b"\x7f\xff", b"\x00\x00", b"\x80\x00")
        )
    if len(data) > 12 and chance.random() < 0.7:
        struct.pack_into(">i", data, 8, len(data) - 12)
    return bytes(data)


def read_everything(data: bytes) -> None:
    """Read the bytes in every way; anything but rows and CorruptRecord is an error."""
    buffer = memoryview(data)
    for allow in (True, False):
        _outcome(lambda allow=allow: batches_in(buffer, allow_partial_tail=allow))
    try:
        batch = batch_at(buffer, 0)
    except CorruptRecord:
        return
    _look_at(batch)
    eager = _rows(lambda: batch.read_records(limit_bytes=LIMIT_BYTES))
    lazy = _rows(lambda: batch.records(limit_bytes=LIMIT_BYTES))
    salvaged = _rows(lambda: batch.salvage_records(limit_bytes=LIMIT_BYTES))
    if eager:
        assert eager == lazy == salvaged
    assert lazy == salvaged[: len(lazy)]
    if isinstance(batch, LegacyBatch):
        _outcome(lambda: (_look_at(m) for m in batch.iter_messages(limit_bytes=LIMIT_BYTES)))
    for record in salvaged:
        _outcome(lambda record=record: [control_type(record), parse_marker(record)])


def decompress_everything(data: bytes) -> None:
    """Decompress the bytes by every codec; all ways agree on what comes out."""
    arena = bytearray(LIMIT_BYTES)
    for codec in Codec:
        for magic in (0, 2):
            found, fault = decompress_prefix(codec, data, magic=magic, limit_bytes=LIMIT_BYTES)
            assert len(found) <= LIMIT_BYTES
            try:
                whole = decompress(codec, data, magic=magic, limit_bytes=LIMIT_BYTES)
                size = decompress_into(codec, data, arena, magic=magic)
            except CorruptRecord:
                assert fault is not None
            else:
                assert fault is None
                assert whole == found == arena[:size]


def _look_at(batch: object) -> None:
    """Ask for every property and check of a view."""
    for name in dir(type(batch)):
        if isinstance(getattr(type(batch), name), property):
            _outcome(lambda name=name: [getattr(batch, name)])
    for name in ("is_crc_valid", "computed_crc", "ensure_valid"):
        if isinstance(batch, BatchView | LegacyBatch):
            _outcome(lambda name=name: [getattr(batch, name)()])


def _rows(read: Callable[[], Iterable[Record]]) -> list[Record]:
    """Return the rows until the end or a typed error."""
    found: list[Record] = []
    try:
        for record in read():
            found.append(record)
    except EngineError as error:
        assert isinstance(error, CorruptRecord)
    return found


def _outcome(read: Callable[[], Iterable[object]]) -> None:
    try:
        for _ in read():
            pass
    except CorruptRecord as error:
        assert str(error)
        assert error.at("file", 100).position == 100 + (error.position or 0)
