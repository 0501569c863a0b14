"""The plain tier counts what compiled code counts, and ends where that ends."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

import pytest

from engine.analysis.plain_header_counts import count_by_headers
from engine.native.header_counts import CountedRecords, HeaderCounter, HeaderRange
from tests.compiled_walk import compiled_count_here
from tests.unit.native.test_header_counts import batch, log

CODE = compiled_count_here()
_ODD = [
    batch(6, leader_epoch=3),
    batch(7),
    batch(5),
    batch(6)[:60],
    batch(6)[:-1],
    bytes(200),
    batch(6)[:16] + b"\1" + batch(6)[17:],
    batch(6)[:22] + b"\5" + batch(6)[23:],
    batch(6)[:23] + struct.pack(">i", -1) + batch(6)[27:57] + bytes(4) + batch(6)[61:],
    batch(6)[:57] + struct.pack(">i", 2) + batch(6)[61:],
    batch(6)[:8] + struct.pack(">i", 48) + batch(6)[12:],
    batch(6)[:8] + struct.pack(">i", 1 << 30) + batch(6)[12:],
]


def plain(content: bytes, *, passes_control: bool = True, **more: int) -> CountedRecords:
    within = HeaderRange(-1, 0, len(content), len(content), 0, 4)._replace(**more)

    def read_at(position: int, size: int) -> bytes:
        return content[position : position + size]

    return count_by_headers(within, read_at, passes_control=passes_control)


def test_all_batches_of_a_range_are_counted() -> None:
    content, two = log(), len(log(2))
    assert CountedRecords(18, len(content), 18) == plain(content)
    assert CountedRecords(6, two, 6) == plain(content, limit=two)
    assert CountedRecords(6, two, 6) == plain(content, limit=two - 60)
    assert CountedRecords(12, len(content), 18) == plain(content, start=two, first_offset=6)


@pytest.mark.parametrize("second", _ODD)
def test_an_odd_batch_ends_the_count_two_batches_before_it(second: bytes) -> None:
    assert CountedRecords(0, 0, 6) == plain(log(2) + second)
    assert CountedRecords(3, len(log(1)), 9) == plain(log(3) + batch(77))


def test_a_batch_up_to_the_largest_offset_is_the_last() -> None:
    first = (1 << 62) - 3
    content = batch(first) + batch(first + 3)
    assert CountedRecords(0, 0, first + 3) == plain(content, first_offset=first)
    assert 3 == plain(batch(first), first_offset=first).record_count


@pytest.mark.parametrize(("passes_control", "records"), [(True, 6), (False, 7)])
def test_control_batches_are_left_out_or_not(records: int, *, passes_control: bool) -> None:
    control = batch(3, 1, is_control=True, producer_id=1, producer_epoch=0)
    content = batch(0) + control + batch(4)
    assert CountedRecords(records, len(content), 7) == plain(content, passes_control=passes_control)


@pytest.fixture
def descriptor() -> Iterator[int]:
    opened = os.memfd_create("log")
    yield opened
    os.close(opened)


@pytest.mark.skipif(CODE is None, reason="no compiled code on this machine")
def test_every_flipped_bit_and_every_end_give_what_compiled_code_gives(descriptor: int) -> None:
    assert CODE is not None
    whole = log(4)
    contents = [whole[:size] for size in range(len(whole))]
    for place in range(len(whole)):
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[place] ^= 1 << bit
            contents.append(bytes(damaged))
    counter = HeaderCounter(CODE, passes_control=True)
    for content in contents:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, content, 0)
        within = HeaderRange(descriptor, 0, len(content), len(content), 0, 4)
        assert counter.count(within) == plain(content)
