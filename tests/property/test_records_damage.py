"""Damaged golden batches and noise give rows or typed errors, in bounded time."""

from __future__ import annotations

import random
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.records.codec import Codec
from engine.records.compression import compress
from tests.unit.records.damage import damaged, decompress_everything, read_everything
from tests.unit.records.samples import WHOLE_CASES, golden_batches, simple_batch

ROUNDS_PER_KIND = 60
BATCH_BYTES_MAX = 20_000


@cache
def batches_by_kind() -> dict[tuple[int, Codec], list[bytes]]:
    """Return the smaller golden batches by magic and codec."""
    found: dict[tuple[int, Codec], list[bytes]] = {}
    for name in WHOLE_CASES:
        for _, batch in golden_batches(name):
            if batch.size_bytes <= BATCH_BYTES_MAX:
                found.setdefault((batch.magic, batch.codec), []).append(bytes(batch.raw))
    return found


KINDS = [(magic, codec) for magic in (0, 1) for codec in Codec if codec is not Codec.ZSTD]


@pytest.mark.parametrize("kind", KINDS + [(2, codec) for codec in Codec], ids=str)
def test_damaged_batches_give_rows_or_typed_errors(kind: tuple[int, Codec]) -> None:
    chance = random.Random(repr(kind))
    batches = batches_by_kind()[kind]
    for _ in range(ROUNDS_PER_KIND):
        read_everything(damaged(chance.choice(batches), chance))


def test_every_single_bit_of_a_batch_may_be_wrong() -> None:
    batch = bytes(simple_batch(2))
    for at in range(len(batch) * 8):
        data = bytearray(batch)
        data[at // 8] ^= 1 << at % 8
        read_everything(bytes(data))


def test_a_batch_may_end_anywhere() -> None:
    batch = bytes(simple_batch(2))
    for size in range(len(batch)):
        read_everything(batch[:size])


@given(st.binary(max_size=200))
def test_noise_gives_rows_or_typed_errors(data: bytes) -> None:
    read_everything(data)
    decompress_everything(data)


@given(st.sampled_from(list(Codec)), st.integers(0, 1 << 32))
def test_damaged_compressed_data_gives_bytes_or_typed_errors(codec: Codec, seed: int) -> None:
    chance = random.Random(seed)
    plain = b"".join(b"record %d " % chance.randrange(500) for _ in range(200))
    decompress_everything(damaged(compress(codec, plain), chance))
