"""What sticky assignors add to a subscription: Java's bytes, both ways, and damaged ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.assignors.user_data import (
    NOTHING,
    PreviousAssignment,
    decode_generation,
    decode_previous_assignment,
    encode_generation,
    encode_previous_assignment,
)
from engine.model import TopicPartition

_PARTITIONS = (
    TopicPartition("orders", 3),
    TopicPartition("a.b", 0),
    TopicPartition("orders", 1),
    TopicPartition("τ", 2),
)
#: As the assignor of 3.9.1 wrote them in generation 5.
_STICKY = bytes.fromhex(
    "00000003"
    "0002cf84"
    "0000000100000002"
    "0003612e62"
    "0000000100000000"
    "00066f7264657273"
    "000000020000000300000001"
    "00000005"
)


def test_what_a_member_had_is_written_as_java_does() -> None:
    assert _STICKY == encode_previous_assignment(PreviousAssignment(_PARTITIONS, 5))


def test_what_a_member_had_is_read_with_and_without_a_generation() -> None:
    partitions, generation_id = decode_previous_assignment(_STICKY)
    assert (sorted(_PARTITIONS), 5) == (sorted(partitions), generation_id)
    assert PreviousAssignment(partitions, -1) == decode_previous_assignment(_STICKY[:-4])


@given(st.lists(st.tuples(st.text(max_size=9), st.integers(0, 99)), unique=True), st.integers(0, 9))
def test_what_a_member_had_survives(keys: list[tuple[str, int]], generation_id: int) -> None:
    previous = PreviousAssignment(tuple(TopicPartition(*key) for key in keys), generation_id)
    read = decode_previous_assignment(encode_previous_assignment(previous))
    assert (set(previous.partitions), generation_id) == (set(read.partitions), read.generation_id)


@given(st.binary(max_size=40))
def test_no_bytes_make_reading_fail(data: bytes) -> None:
    assert decode_previous_assignment(data).generation_id is not None
    assert decode_generation(data) is not None


@pytest.mark.parametrize("data", [None, b"", b"\xff" * 8, b"\x7f\xff\xff\xff", _STICKY[:-5]])
def test_what_cannot_be_read_is_nothing(data: bytes | None) -> None:
    assert NOTHING == decode_previous_assignment(data)


def test_a_generation_is_written_as_java_does() -> None:
    assert b"\0\0\0\5" == encode_generation(5)
    assert b"\xff\xff\xff\xff" == encode_generation(-1)
    assert 5 == decode_generation(b"\0\0\0\5more")


@pytest.mark.parametrize("data", [None, b"", b"\0\0\5"])
def test_a_generation_that_cannot_be_read_is_none(data: bytes | None) -> None:
    assert -1 == decode_generation(data)
