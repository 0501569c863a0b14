"""Walking over batches of every codec, in memory that is used again."""

from __future__ import annotations

import pytest

from engine.limits import WALK_ARENA_BYTES, WALK_ARENA_BYTES_MAX
from engine.log.batch_walk import WalkArena, walk_compressed
from engine.records.codec import Codec
from tests.unit.log.writing import sent

LIMIT = 1 << 30


@pytest.fixture(autouse=True)
def no_memory_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WalkArena, "memory", memoryview(bytearray()))


@pytest.mark.parametrize("codec", [c for c in Codec if c], ids=lambda c: c.label)
def test_records_of_every_codec_are_walked(codec: Codec) -> None:
    assert (0, 299, False) == walk_compressed(sent(300, codec=codec), codec, 300, LIMIT)
    assert walk_compressed(sent(300, codec=codec), codec, 299, LIMIT) is None


def test_memory_grows_to_what_batches_need_and_stays() -> None:
    large = sent(2, value=bytes(WALK_ARENA_BYTES), codec=Codec.LZ4)
    assert walk_compressed(large, Codec.LZ4, 2, LIMIT) is not None
    grown = WalkArena.memory
    assert WALK_ARENA_BYTES < len(grown) <= WALK_ARENA_BYTES_MAX
    assert walk_compressed(sent(codec=Codec.GZIP), Codec.GZIP, 1, LIMIT) is not None
    assert WalkArena.memory is grown


@pytest.mark.parametrize("codec", [c for c in Codec if c], ids=lambda c: c.label)
def test_what_is_larger_than_that_is_walked_all_the_same(codec: Codec) -> None:
    larger = sent(1, value=bytes(WALK_ARENA_BYTES_MAX + 1), codec=codec)
    assert walk_compressed(larger, codec, 1, LIMIT) is not None
    assert len(WalkArena.memory) <= WALK_ARENA_BYTES_MAX
    assert walk_compressed(larger, codec, 1, WALK_ARENA_BYTES_MAX) is None


def test_what_cannot_be_opened_is_unusual() -> None:
    data = sent(3, codec=Codec.GZIP)
    data[-1] ^= 0xFF
    assert walk_compressed(data, Codec.GZIP, 3, LIMIT) is None
