"""Walking over the records of a compressed batch.

They are opened into memory that is used again for the next batch: fresh memory of that size costs
as much as opening them, for the kernel hands it out page by page. Pure, but for that memory; for
one thread.
"""

from __future__ import annotations

from engine.errors import CorruptRecord
from engine.limits import WALK_ARENA_BYTES, WALK_ARENA_BYTES_MAX
from engine.native.record_walk import Walked, WalkTier
from engine.records.batch import HEADER_BYTES
from engine.records.codec import Codec, DecompressedTooLarge
from engine.records.compression import decompress, decompress_into, ordinary_reader


class WalkArena:
    """The memory that records are opened in; there is one in a process.

    It grows to what batches need, to WALK_ARENA_BYTES_MAX at most, and stays.
    """

    memory = memoryview(bytearray())


def walk_compressed(data: memoryview, codec: int, count: int, limit_bytes: int) -> Walked:
    """Return what the records of one whole batch have in common, None if they are unusual.

    So are records that cannot be opened, or are larger than `limit_bytes` then; a limit below the
    memory's own bound is passed over.
    """
    block, memory = data[HEADER_BYTES:], WalkArena.memory
    size = ordinary_reader(codec)(block, memory)
    if size is not None:
        return WalkTier.walk(memory[:size], 0, count)
    try:
        opened = _opened(Codec(codec), block, limit_bytes)
    except CorruptRecord:
        return None
    return WalkTier.walk(opened, 0, count)


def _opened(codec: Codec, block: memoryview, limit_bytes: int) -> bytes | memoryview:
    wanted = max(len(WalkArena.memory), WALK_ARENA_BYTES)
    while wanted <= WALK_ARENA_BYTES_MAX:
        if wanted > len(WalkArena.memory):
            WalkArena.memory = memoryview(bytearray(wanted))
        try:
            size = decompress_into(codec, block, WalkArena.memory)
        except DecompressedTooLarge:
            wanted *= 4
        else:
            return WalkArena.memory[:size]
    return decompress(codec, block, limit_bytes=limit_bytes)
