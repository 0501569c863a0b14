"""The index of aborted transactions."""

from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import CorruptFile
from engine.log.txn_index import (
    AbortedTransaction,
    encode_txn_index,
    find_aborted,
    parse_txn_index,
)

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
ENTRIES = st.lists(
    st.builds(AbortedTransaction, INT64, INT64, INT64, INT64, st.just(0)), max_size=5
)


def test_an_entry_has_34_bytes() -> None:
    content = encode_txn_index([AbortedTransaction(5, 4, 7, 8)])
    assert content == struct.pack(">hqqqq", 0, 5, 4, 7, 8)


@given(ENTRIES, st.integers(0, 33))
def test_what_was_written_is_read_without_a_cut_entry(
    entries: list[AbortedTransaction], leftover: int
) -> None:
    found = parse_txn_index(encode_txn_index(entries) + bytes(leftover), "x")
    assert found == (tuple(entries), leftover)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    with suppress(CorruptFile):
        parse_txn_index(content, "x").find_problem(0)


def test_an_unknown_version_is_refused_at_its_place() -> None:
    content = encode_txn_index([AbortedTransaction(5, 4, 7, 8)]) + b"\0\1" + bytes(32)
    with pytest.raises(CorruptFile) as raised:
        parse_txn_index(content, "x")
    assert (raised.value.position, raised.value.got) == (34, 1)


def test_kafkas_sanity_check_finds_entries_of_an_earlier_segment() -> None:
    index = parse_txn_index(encode_txn_index([AbortedTransaction(5, 4, 7, 8)]), "x")
    assert index.find_problem(7) is None
    assert index.find_problem(8) == "last offset 7 is below the base offset 8"


def test_a_range_collects_what_overlaps_and_knows_when_it_is_complete() -> None:
    first, second = AbortedTransaction(1, 0, 10, 5), AbortedTransaction(2, 5, 20, 21)
    assert find_aborted([first, second], 11, 15) == ([second], True)
    assert find_aborted([first, second], 10, 30) == ([first, second], False)
    assert find_aborted([first, second], 0, 5) == ([first], True)
    assert find_aborted([], 0, 5) == ([], False)
