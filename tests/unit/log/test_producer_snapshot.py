"""Producer snapshots."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import CorruptFile
from engine.log.producer_snapshot import (
    ProducerEntry,
    SnapshotCrcMismatch,
    encode_producer_snapshot,
    parse_producer_snapshot,
)

INT16, INT32, INT64 = (st.integers(-(1 << b), (1 << b) - 1) for b in (15, 31, 63))
ENTRIES = st.lists(
    st.builds(ProducerEntry, INT64, INT16, INT32, INT64, INT32, INT64, INT32, INT64), max_size=4
)
ONE = ProducerEntry(7, 1, 9, 42, 3, 1_700_000_000_000)


def test_a_snapshot_has_10_bytes_and_46_a_producer() -> None:
    assert len(encode_producer_snapshot([])) == 10
    assert len(encode_producer_snapshot([ONE, ONE])) == 10 + 2 * 46


@given(ENTRIES)
def test_what_was_written_is_read(entries: list[ProducerEntry]) -> None:
    assert parse_producer_snapshot(encode_producer_snapshot(entries), "x") == tuple(entries)


@given(st.binary(max_size=120))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    with suppress(CorruptFile):
        parse_producer_snapshot(content, "x")


@pytest.mark.parametrize("position", [2, 10, 55])
def test_a_changed_byte_breaks_the_checksum(position: int) -> None:
    content = bytearray(encode_producer_snapshot([ONE]))
    content[position] ^= 1
    with pytest.raises(SnapshotCrcMismatch) as raised:
        parse_producer_snapshot(content, "x")
    assert raised.value.stored_crc != raised.value.computed_crc


@pytest.mark.parametrize(
    "content", [b"", bytes(9), b"\0\2" + bytes(8), b"\0\1" + b"\0" * 4 + b"\x7f\xff\xff\xff"]
)
def test_another_format_is_refused_before_memory_is_taken(content: bytes) -> None:
    with pytest.raises(CorruptFile):
        parse_producer_snapshot(content, "x")


def test_the_first_sequence_wraps_and_is_missing_without_a_batch() -> None:
    assert ONE.first_sequence == 6
    assert ONE._replace(last_sequence=1).first_sequence == (1 << 31) - 2
    assert ONE._replace(last_offset=-1).first_sequence == -1
