"""Gzip: Java's header, several members, and what may follow them."""

from __future__ import annotations

import tracemalloc
import zlib

import pytest

from engine.records import gzip
from engine.records.codec import CompressedDataCorrupt
from tests.unit.records.samples import LONG_TEXT

LIMIT = 1 << 20
TEXT = b"orders clicks ledger audit " * 400


def opened(data: bytes) -> bytes:
    return b"".join(gzip.pieces(memoryview(data), LIMIT))


def member_with(flags: int, extra: bytes) -> bytes:
    plain = gzip.compress(TEXT, -1)
    return plain[:3] + bytes((flags,)) + plain[4:10] + extra + plain[10:]


def test_the_header_is_javas() -> None:
    assert gzip.compress(b"", -1)[:10].hex() == "1f8b08000000000000ff"


def test_any_gzip_reads_what_is_written() -> None:
    assert zlib.decompress(gzip.compress(TEXT, 9), 31) == TEXT


def test_members_follow_each_other() -> None:
    assert opened(gzip.compress(b"one ", 1) + gzip.compress(TEXT, 9)) == b"one " + TEXT


@pytest.mark.parametrize("tail", [b"\x00", b"garbage after the member", bytes(5000)])
def test_what_follows_the_last_member_is_ignored(tail: bytes) -> None:
    assert opened(gzip.compress(TEXT, -1) + tail) == TEXT


def test_a_broken_second_member_is_corrupt() -> None:
    second = gzip.compress(TEXT, -1)
    with pytest.raises(CompressedDataCorrupt):
        opened(gzip.compress(TEXT, -1) + second[:-20])


def test_optional_header_fields_are_skipped() -> None:
    extra = b"\x05\x00extra"
    names = b"name\x00comment\x00"
    assert opened(member_with(0x04, extra)) == TEXT
    assert opened(member_with(0x18, names)) == TEXT
    header = member_with(0x1E, extra + names)[: 10 + len(extra + names)]
    checksum = (zlib.crc32(header) & 0xFFFF).to_bytes(2, "little")
    assert opened(member_with(0x1E, extra + names + checksum)) == TEXT


@pytest.mark.parametrize(
    ("flags", "extra"), [(0x02, b"\x00\x01"), (0x04, b"\xff\xff"), (0x08, b"\xff" * 5000)]
)
def test_a_header_that_does_not_hold_is_corrupt(flags: int, extra: bytes) -> None:
    damaged = member_with(flags, extra)[: 10 + len(extra)]
    with pytest.raises(CompressedDataCorrupt, match="a gzip header"):
        opened(damaged)


@pytest.mark.parametrize("cut", [10, 9, 11, 12])
def test_a_header_cut_short_is_corrupt(cut: int) -> None:
    with pytest.raises(CompressedDataCorrupt):
        opened(member_with(0x06, b"\x01\x00x")[:cut])


@pytest.mark.parametrize("at", [-1, -8])
def test_the_trailer_is_checked(at: int) -> None:
    data = bytearray(gzip.compress(TEXT, -1))
    data[at] ^= 1
    with pytest.raises(CompressedDataCorrupt, match="checksum and size"):
        opened(bytes(data))


def test_a_trailer_cut_short_is_corrupt() -> None:
    with pytest.raises(CompressedDataCorrupt, match="trailer"):
        opened(gzip.compress(TEXT, -1)[:-1])


def test_damage_in_the_middle_gives_what_came_before() -> None:
    plain = gzip.compress(LONG_TEXT, -1)
    # A block of the reserved kind 3 cannot be deflated data, wherever it stands.
    head = zlib.compressobj(6, zlib.DEFLATED, -15)
    start = head.compress(LONG_TEXT[:200_000]) + head.flush(zlib.Z_FULL_FLUSH)
    data = plain[:10] + start + b"\x07" + bytes(50)
    found = bytearray()
    with pytest.raises(CompressedDataCorrupt, match="deflated data"):
        for piece in gzip.pieces(memoryview(data), LIMIT, keep_prefix=True):
            found += piece
    assert found == LONG_TEXT[:200_000]


def test_without_asking_only_whole_pieces_come_before_a_fault() -> None:
    data = bytearray(gzip.compress(LONG_TEXT, -1))
    data[len(data) // 2 :] = b"\xff" * 50
    with pytest.raises(CompressedDataCorrupt):
        opened(bytes(data))


def test_content_larger_than_a_piece_ends_where_its_trailer_begins() -> None:
    content = bytes((4 << 20) + 100)
    data = gzip.compress(content, -1) + gzip.compress(TEXT, -1)
    assert b"".join(gzip.pieces(memoryview(data), len(content) + len(TEXT))) == content + TEXT


@pytest.mark.parametrize(("flags", "extra"), [(0x08, b"n\0"), (0x18, b"n\0c\0")])
def test_what_follows_a_small_member_is_not_copied(flags: int, extra: bytes) -> None:
    member = member_with(flags, extra)
    data = memoryview(member * (1_000_000 // len(member)))
    tracemalloc.start()
    try:
        found = next(gzip.pieces(data, LIMIT))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == opened(member)
    assert peak < 200_000


def test_a_name_of_any_length_is_passed_over() -> None:
    for size in (0, 1, 255, 256, 257, 1000):
        named = member_with(0x08, b"n" * size + b"\0")
        assert opened(named) == opened(member_with(0, b""))
