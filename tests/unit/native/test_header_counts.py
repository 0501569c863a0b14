"""Records counted by headers: what is counted, where it ends, and that nothing else is read."""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Iterator

import pytest

from engine.native import header_counts
from engine.native.header_counts import (
    CountedRecords,
    CountTier,
    HeaderCounter,
    HeaderRange,
    is_count_right,
    load_or_compile_count,
)
from engine.records.builder import BatchBuilder, BatchSettings
from engine.records.codec import Codec
from tests.compiled_walk import compiled_count_here

CODE = compiled_count_here()
pytestmark = pytest.mark.skipif(CODE is None, reason="no compiled code on this machine")


def batch(base_offset: int, count: int = 3, **more: object) -> bytes:
    settings = {"leader_epoch": 4, **more}
    builder = BatchBuilder(BatchSettings(base_offset=base_offset, **settings))  # type: ignore[arg-type]
    for number in range(count):
        builder.append(1000 + number, b"key%d" % number, b"value")
    return bytes(builder.build())


def log(count: int = 6) -> bytes:
    codecs = (Codec.NONE, Codec.ZSTD, Codec.LZ4)
    return b"".join(batch(3 * n, codec=codecs[n % 3]) for n in range(count))


@pytest.fixture
def descriptor() -> Iterator[int]:
    opened = os.memfd_create("log")
    yield opened
    os.close(opened)


def count(
    descriptor: int, content: bytes, *, passes_control: bool = True, **more: int
) -> CountedRecords:
    assert CODE is not None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, content, 0)
    within = HeaderRange(descriptor, 0, len(content), len(content), 0, 4)._replace(**more)
    return HeaderCounter(CODE, passes_control=passes_control).count(within)


def test_all_batches_of_a_range_are_counted(descriptor: int) -> None:
    content = log()
    assert CountedRecords(18, len(content), 18) == count(descriptor, content)
    two = len(log(2))
    assert CountedRecords(6, two, 6) == count(descriptor, content, limit=two)
    assert CountedRecords(6, two, 6) == count(descriptor, content, limit=two - 60)
    assert CountedRecords(12, len(content), 18) == count(
        descriptor, content, start=two, first_offset=6
    )


def test_more_batches_than_one_call_takes_are_counted(
    descriptor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = log()
    for frames_max in (1, 2, 5, 6):
        monkeypatch.setattr(header_counts, "_FRAMES_MAX", frames_max)
        assert CountedRecords(18, len(content), 18) == count(descriptor, content)
        left = content[: len(log(4))] + content[len(log(5)) :]
        assert (6, len(log(2))) == count(descriptor, left)[:2]


@pytest.mark.parametrize(("passes_control", "records"), [(True, 6), (False, 7)])
def test_control_batches_are_left_out_or_not(
    descriptor: int, records: int, *, passes_control: bool
) -> None:
    control = batch(3, 1, is_control=True, producer_id=1, producer_epoch=0)
    content = batch(0) + control + batch(4)
    counted = count(descriptor, content, passes_control=passes_control)
    assert CountedRecords(records, len(content), 7) == counted


@pytest.mark.parametrize(
    ("second", "is_counted"),
    [
        (batch(6), True),
        (batch(6, leader_epoch=5), True),
        (batch(6, leader_epoch=3), False),
        (batch(7), False),
        (batch(5), False),
        (b"", True),
        (batch(6)[:60], False),
        (batch(6)[:-1], False),
        (bytes(200), False),
        (batch(6)[:16] + b"\1" + batch(6)[17:], False),
        (batch(6)[:22] + b"\5" + batch(6)[23:], False),
        (batch(6)[:57] + struct.pack(">i", 2) + batch(6)[61:], False),
        (batch(6)[:8] + struct.pack(">i", 48) + batch(6)[12:], False),
        (batch(6)[:8] + struct.pack(">i", 1 << 30) + batch(6)[12:], False),
    ],
)
def test_an_odd_batch_ends_the_count_two_batches_before_it(
    descriptor: int, second: bytes, *, is_counted: bool
) -> None:
    content = log(2) + second
    counted = count(descriptor, content)
    if is_counted:
        assert (len(content), 9 if second else 6) == (counted.position, counted.record_count)
    else:
        assert (0, 0) == (counted.record_count, counted.position)
        assert (3, len(log(1))) == count(descriptor, log(3) + batch(77))[:2]


def test_a_first_batch_of_another_offset_is_not_counted(descriptor: int) -> None:
    assert CountedRecords(0, 0, 1) == count(descriptor, log(), first_offset=1)
    assert CountedRecords(0, 0, 0) == count(descriptor, log(), first_epoch=5)
    assert CountedRecords(0, 0, 0) == count(descriptor, b"")


def test_a_file_that_cannot_be_read_is_not_counted(descriptor: int) -> None:
    assert CODE is not None
    os.pwrite(descriptor, log(), 0)
    end = len(log())
    os.ftruncate(descriptor, len(log(3)))
    counted = HeaderCounter(CODE, passes_control=True).count(
        HeaderRange(descriptor, 0, end, end, 0, 4)
    )
    assert (3, len(log(1))) == counted[:2]


def test_random_bytes_end_and_never_count_more_than_they_say(descriptor: int) -> None:
    chance = random.Random(5)
    for _ in range(300):
        content = bytearray(log(chance.randrange(1, 6)))
        for _ in range(chance.randrange(1, 6)):
            content[chance.randrange(len(content))] = chance.randrange(256)
        counted = count(descriptor, bytes(content))
        assert 0 <= counted.position <= len(content)
        assert 0 <= counted.record_count <= 18


def test_code_that_counts_wrongly_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert CODE is not None
    assert is_count_right(CODE)
    monkeypatch.setattr(CountTier, "code", None)
    monkeypatch.setattr(CountTier, "is_sought", False)
    assert load_or_compile_count()
    monkeypatch.setattr(CountTier, "code", None)
    monkeypatch.setattr(CountTier, "is_sought", False)
    monkeypatch.setattr(header_counts, "is_count_right", lambda _code: False)
    assert not load_or_compile_count()


def test_code_that_cannot_be_tried_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CountTier, "code", None)
    monkeypatch.setattr(CountTier, "is_sought", False)
    monkeypatch.setenv("TMPDIR", "/no/such/folder")
    assert not load_or_compile_count()
