"""What the plain walk calls usual, and when the compiled tier is used at all."""

from __future__ import annotations

import pytest

from engine.host.ports import Buffer
from engine.native.record_walk import Walked, WalkTier, is_walk_right, use_compiled, walk_plainly
from engine.records.varint import write_varint


def numbers(*values: int) -> bytes:
    out = bytearray()
    for value in values:
        write_varint(out, value)
    return bytes(out)


def record(
    offset: int = 0,
    *,
    time: bytes = b"\x00",
    key: bytes = b"\x02k",
    value: bytes = b"\x02v",
    headers: bytes = b"\x00",
    longer: int = 0,
) -> bytes:
    inner = b"\x00" + time + numbers(offset) + key + value + headers
    return numbers(len(inner) + longer) + inner


@pytest.fixture
def own_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WalkTier, "walk", staticmethod(walk_plainly))


def test_the_plain_walk_answers_the_samples_right() -> None:
    assert is_walk_right(walk_plainly)


def test_times_and_null_keys_are_reported() -> None:
    block = record(0, time=numbers(-70)) + record(1, time=numbers(9000), key=b"\x01")
    assert walk_plainly(block, 0, 2) == (-70, 9000, True)
    assert walk_plainly(b"###" + block, 3, 2) == (-70, 9000, True)
    assert walk_plainly(record(), 0, 1) == (0, 0, False)


#: Blocks that are said to be of one record, and are unusual.
SLOW_PATH = [
    b"",
    b"\x00",
    b"\x80" * 9,
    record(1),
    record(longer=1),
    record(longer=-1),
    record() + b"\x00",
    record() + record(1),
    record(key=numbers(90)),
    record(value=numbers(90)),
    record(headers=numbers(-1)),
    record(headers=numbers(1)),
    record(headers=numbers(1, -1, -1)),
    record(headers=numbers(1 << 30)),
    record(headers=numbers(1, 0, 99)),
    record(time=numbers(1 << 55)),
    record(time=b"\x80" * 9 + b"\x00"),
    record(key=b"\x80\x80\x80\x80\x00"),
]


@pytest.mark.parametrize("block", SLOW_PATH)
def test_anything_else_than_the_format_is_unfast(block: bytes) -> None:
    assert walk_plainly(block, 0, 1) is None


def test_more_records_said_than_bytes_there_end_at_once() -> None:
    assert walk_plainly(record(), 0, (1 << 31) - 1) is None


@pytest.mark.usefixtures("own_tier")
def test_a_tier_that_errs_is_not_used() -> None:
    def wrong(data: Buffer, position: int, count: int) -> Walked:
        return (0, 0, False)

    assert not use_compiled(wrong)
    assert WalkTier.walk is walk_plainly


@pytest.mark.usefixtures("own_tier")
def test_a_tier_that_is_right_is_used_from_then_on() -> None:
    def right(data: Buffer, position: int, count: int) -> Walked:
        return walk_plainly(data, position, count)

    assert use_compiled(right)
    assert WalkTier.walk is right
