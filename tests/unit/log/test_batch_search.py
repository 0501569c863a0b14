"""Where a log goes on behind damage: never inside a value, in time that grows with the bytes."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import pytest

from engine.host.memory import MemoryFiles
from engine.host.ports import File
from engine.log.batch_search import (
    find_end_after_bad_crc,
    find_end_after_bad_length,
    find_next_batch,
    is_whole,
)
from engine.records.builder import BatchBuilder, BatchSettings

TIME_MS = 1_700_000_000_000


def _batch(base_offset: int, value: bytes = b"v" * 40, count: int = 1) -> bytes:
    builder = BatchBuilder(BatchSettings(base_offset=base_offset))
    for _ in range(count):
        builder.append(TIME_MS, b"k", value)
    return bytes(builder.build())


def _message(offset: int, value: bytes) -> bytes:
    """Return a message of magic 1."""
    parts = b"".join(len(part).to_bytes(4, "big") + part for part in (b"k", value))
    body = bytes((1, 0)) + TIME_MS.to_bytes(8, "big") + parts
    message = zlib.crc32(body).to_bytes(4, "big") + body
    return offset.to_bytes(8, "big") + len(message).to_bytes(4, "big") + message


INNER = b"".join(_batch(5000 + n) for n in range(3))
MIRRORS = {
    "batches": [_batch(n, INNER) for n in range(6)],
    "messages": [_message(n, INNER) for n in range(6)],
    "messages of messages": [
        _message(n, b"".join(_message(7000 + k, b"v" * 40) for k in range(3))) for n in range(6)
    ],
}


def _file(content: bytes) -> File:
    file = MemoryFiles().open("f.log", write=True, create=True)
    file.append([content])
    return file


def _with_length(batch: bytes, length: int) -> bytes:
    return batch[:8] + length.to_bytes(4, "big") + batch[12:]


def _after(file: File, position: int) -> int | None:
    """Return where a reader goes on after the batch at a position, whose length is wrong."""
    length = int.from_bytes(file.read_at(position + 8, 4), "big", signed=True)
    stated_end = position + 12 + length
    if length < 14 or stated_end > file.size_bytes():
        return find_end_after_bad_length(file, position)
    return find_end_after_bad_crc(file, position, stated_end)


class _Reads:
    """A file that counts the bytes that are read from it."""

    path = "f.log"

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.read_bytes = 0

    def size_bytes(self) -> int:
        return len(self._content)

    def read_at(self, position: int, length: int) -> bytes:
        chunk = self._content[position : position + length]
        self.read_bytes += len(chunk)
        return chunk


@pytest.mark.parametrize("bit", range(32))
@pytest.mark.parametrize("mirror", MIRRORS)
@pytest.mark.parametrize("tail", [b"", bytes(5000)])
def test_a_log_of_other_logs_goes_on_at_its_own_next_batch(
    bit: int, mirror: str, tail: bytes
) -> None:
    batches = MIRRORS[mirror]
    for number in (2, 5):
        position = sum(map(len, batches[:number]))
        damaged = bytearray(b"".join(batches))
        damaged[position + 8 + bit // 8] ^= 1 << bit % 8
        found = _after(_file(bytes(damaged) + tail), position)
        end = position + len(batches[number])
        # The last one has nothing behind it where the log could go on.
        assert found == end or (number == 5 and found in (None, len(damaged) + len(tail)))


@pytest.mark.parametrize("mirror", MIRRORS)
def test_damage_inside_a_batch_of_other_batches_is_passed_over_with_all_of_it(mirror: str) -> None:
    batches = MIRRORS[mirror]
    position = len(batches[0])
    for at in (*range(12, 16), *range(17, 60), len(batches[1]) - 1):
        damaged = bytearray(b"".join(batches))
        damaged[position + at] ^= 0x10
        assert position + len(batches[1]) == _after(_file(bytes(damaged)), position)


def test_a_length_that_ends_in_zeros_behind_the_log_hides_no_batch() -> None:
    batches = [_batch(n) for n in range(8)]
    log = b"".join(batches)
    for extra in (1, 61, 300):
        length = len(log) - len(batches[0]) * 2 - 12 + extra
        damaged = log[: 2 * len(batches[0])] + _with_length(batches[2], length)
        raw = damaged + log[len(damaged) :] + bytes(400)
        assert 3 * len(batches[0]) == _after(_file(raw), 2 * len(batches[0]))


def test_a_length_that_covers_batches_is_found_out_though_other_bytes_are_wrong_too() -> None:
    batches = [_batch(n) for n in range(8)]
    size = len(batches[0])
    for tail in (b"", bytes(200)):
        damaged = bytearray(b"".join(batches) + tail)
        damaged[8:12] = (size * 8 - 12 + len(tail) // 2).to_bytes(4, "big")
        damaged[size - 1] ^= 1
        assert size == _after(_file(bytes(damaged)), 0)


def test_behind_the_last_whole_batch_the_search_ends_the_log() -> None:
    damaged = _with_length(_batch(0), 40) + b"no batch" * 20
    assert len(damaged) == find_end_after_bad_crc(_file(damaged), 0, 52)


def _garbage() -> bytes:
    """Return what reads as small batches, none of which is one."""
    return b"".join(bytes(8) + (60).to_bytes(4, "big") + b"\x02" * 60 for _ in range(400))


@pytest.mark.parametrize(
    ("content", "share"),
    [
        (b"".join(_batch(n)[:-1] + b"x" for n in range(600)), 8),
        (_garbage(), 8),
        # The length of the first covers all, and its zeros; a chain from each batch ends nowhere.
        (_with_length(_batch(0), 600 * len(_batch(0)) + 30) + b"x" + b"".join(
            _batch(n) for n in range(600)) + b"x" + bytes(500), 8),
    ],
    ids=["wrong CRCs", "garbage", "chains"],
)  # fmt: skip
def test_damage_everywhere_is_read_only_so_often(content: bytes, share: int) -> None:
    file = _Reads(content)
    position = 0
    while position < len(content) - 17:
        length = int.from_bytes(content[position + 8 : position + 12], "big", signed=True)
        stated_end = position + 12 + length
        if length < 14 or stated_end > len(content):
            following = find_end_after_bad_length(file, position)
            position = len(content) if following is None else following
        elif is_whole(file, position, stated_end - position):
            position = stated_end
        else:
            position = find_end_after_bad_crc(file, position, stated_end)
    assert file.read_bytes < share * len(content)


@pytest.mark.parametrize("fill", [b"\x00", b"\x01", b"\x02", b"\x00\x02", b"\x02\x00\x00"])
def test_the_search_looks_closely_at_few_places_of_filled_areas(
    fill: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    from engine.log import batch_search

    def counted(read: Callable[..., int]) -> Callable[..., int]:
        def look(*arguments: object) -> int:
            looked.append(1)
            return read(*arguments)

        return look

    monkeypatch.setattr(batch_search, "_size_by_header", counted(batch_search._size_by_header))
    monkeypatch.setattr(batch_search, "_legacy_size", counted(batch_search._legacy_size))
    area = fill * (1 << 18)
    assert len(area) == find_next_batch(_file(area + _batch(0)), 0)
    assert len(looked) < len(area) // 2


@pytest.mark.parametrize("inner_offset", [0, 5000])
@pytest.mark.parametrize("damage", [bytes(70), b"\xa5" * 70], ids=["zeros", "garbage"])
@pytest.mark.parametrize("tail", [b"", bytes(500), "cut off"])
def test_without_a_header_offsets_distinguish_a_batch_in_a_value_from_the_log(
    inner_offset: int, damage: bytes, tail: bytes | str
) -> None:
    inner = b"".join(_batch(inner_offset + n) for n in range(3))
    batches = [_batch(100 + n, inner) for n in range(6)]
    size = len(batches[0])
    ending = tail if isinstance(tail, bytes) else _batch(106, inner)[:-20]
    damaged = [damage + batch[len(damage) :] for batch in batches]
    log = b"".join([*batches[:2], damaged[2], *batches[3:], ending])
    assert 3 * size == find_end_after_bad_length(_file(log), 2 * size, next_offset=102)
    # What lies between two damages is the log's, too.
    log = b"".join([*batches[:2], damaged[2], batches[3], damaged[4], batches[5], ending])
    assert 3 * size == find_end_after_bad_length(_file(log), 2 * size, next_offset=102)
    assert 5 * size == find_end_after_bad_length(_file(log), 4 * size, next_offset=104)
