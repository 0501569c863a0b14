"""Front to back through a log file, and finding the way again behind damage."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import CorruptRecord
from engine.host.memory import MemoryFiles
from engine.host.ports import File
from engine.log.batch_scan import scan_batches, zero_tail_start
from engine.log.batch_search import find_next_batch
from tests.unit.log.logs import batch

ONE, TWO, BIG = batch(0), batch(1, 3), batch(4, 500)


def file_of(content: bytes) -> File:
    file = MemoryFiles().open("f.log", write=True, create=True)
    file.append([content])
    return file


@pytest.mark.parametrize("chunk_bytes", [1, 61, 100, 1 << 20])
def test_every_batch_is_seen_with_chunks_of_any_size(chunk_bytes: int) -> None:
    file = file_of(ONE + TWO + BIG + ONE)
    scan = scan_batches(file, chunk_bytes=chunk_bytes)
    found = [(at, b.base_offset, b.size_bytes, b.is_crc_valid()) for at, b in scan]
    sizes = [len(ONE), len(TWO), len(BIG), len(ONE)]
    starts = [sum(sizes[:n]) for n in range(4)]
    assert found == [
        (at, base, size, True) for at, base, size in zip(starts, (0, 1, 4, 0), sizes, strict=True)
    ]
    assert (scan.position, scan.trailing_bytes) == (sum(sizes), 0)


def test_a_scan_can_start_and_end_inside_the_file() -> None:
    file = file_of(ONE + TWO + BIG)
    scan = scan_batches(file, start=len(ONE), end=len(ONE) + len(TWO))
    assert [at for at, _ in scan] == [len(ONE)]
    assert scan.trailing_bytes == 0


@given(st.integers(0, len(ONE + TWO)))
def test_a_file_cut_anywhere_ends_at_its_last_whole_batch(size: int) -> None:
    scan = scan_batches(file_of((ONE + TWO)[:size]), chunk_bytes=64)
    whole = [at + b.size_bytes for at, b in scan]
    end = whole[-1] if whole else 0
    assert end == max(x for x in (0, len(ONE), len(ONE + TWO)) if x <= size)
    assert (scan.position, scan.trailing_bytes) == (end, size - end)


@pytest.mark.parametrize("left", [1, 16, 17])
def test_seventeen_zero_bytes_are_no_header_yet(left: int) -> None:
    # Source: FileLogInputStream stops at position >= end - 17.
    scan = scan_batches(file_of(ONE + bytes(left)))
    assert len(list(scan)) == 1
    assert scan.trailing_bytes == left


@pytest.mark.parametrize("length", [-(1 << 31), -1, 0, 13])
def test_a_length_below_fourteen_is_corrupt(length: int) -> None:
    damaged = bytearray(ONE)
    damaged[8:12] = length.to_bytes(4, "big", signed=True)
    scan = scan_batches(file_of(TWO + damaged))
    seen = []
    with pytest.raises(CorruptRecord) as raised:
        seen.extend(at for at, _ in scan)
    assert seen == [0]
    assert (raised.value.path, raised.value.position) == ("f.log", len(TWO))
    assert (scan.position, scan.trailing_bytes) == (len(TWO), len(ONE))


def test_a_length_of_fourteen_is_the_smallest_message() -> None:
    payload = b"\0\0" + b"\xff" * 8
    message = bytes(8) + (14).to_bytes(4, "big") + zlib.crc32(payload).to_bytes(4, "big") + payload
    ((_, found),) = list(scan_batches(file_of(message)))
    assert (found.magic, found.size_bytes, found.is_crc_valid()) == (0, 26, True)


def test_a_huge_length_takes_no_memory() -> None:
    damaged = bytearray(ONE)
    damaged[8:12] = (0x7FFFFFFF).to_bytes(4, "big")
    scan = scan_batches(file_of(bytes(damaged)))
    assert list(scan) == []
    assert scan.trailing_bytes == len(ONE)


def test_a_batch_of_magic_2_without_room_for_its_header_is_corrupt_at_its_place() -> None:
    damaged = ONE[:8] + (20).to_bytes(4, "big") + ONE[12:32]
    scan = scan_batches(file_of(TWO + damaged))
    with pytest.raises(CorruptRecord) as raised:
        list(scan)
    assert raised.value.position == len(TWO)
    assert scan.position == len(TWO)


def test_a_view_is_overwritten_by_the_next_chunk_and_never_resized() -> None:
    views = [view for _, view in scan_batches(file_of(ONE + BIG), chunk_bytes=100).iter_frames()]
    assert [len(view) for view in views] == [len(ONE), len(BIG)]


def test_a_file_that_shrinks_meanwhile_ends_the_scan() -> None:
    file = file_of(ONE * 10)
    scan = scan_batches(file, chunk_bytes=len(ONE))
    seen = 0
    for _ in scan:
        seen += 1
        file.truncate(len(ONE) + 30)
    assert seen == 1


def test_zero_tails_are_distinguished_from_data() -> None:
    assert zero_tail_start(file_of(ONE + bytes(5000)), len(ONE), chunk_bytes=64) == len(ONE)
    assert zero_tail_start(file_of(ONE + bytes(5000) + b"x"), len(ONE), chunk_bytes=64) is None
    assert zero_tail_start(file_of(ONE), len(ONE)) is None


@pytest.mark.parametrize("chunk_bytes", [122, 1000, 1 << 20])
def test_resync_finds_the_next_good_batch(chunk_bytes: int) -> None:
    noise = random.Random(1).randbytes(3000)
    file = file_of(noise + BIG + TWO)
    assert find_next_batch(file, 0, chunk_bytes=chunk_bytes) == len(noise)
    assert find_next_batch(file, len(noise) + 1, chunk_bytes=chunk_bytes) == len(noise) + len(BIG)
    assert find_next_batch(file, len(noise) + len(BIG) + 1, chunk_bytes=chunk_bytes) is None


def test_resync_passes_by_a_header_with_a_wrong_checksum() -> None:
    damaged = bytearray(BIG)
    damaged[-1] ^= 1
    assert find_next_batch(file_of(bytes(damaged) + TWO), 0) == len(damaged)


class _Counted:
    """A file of some size whose reads a test looks at."""

    path = "f.log"

    def __init__(self, size: int, read_at: Callable[[int, int], bytes]) -> None:
        self._size = size
        self.read_at = read_at

    def size_bytes(self) -> int:
        return self._size


def test_resync_reads_misleading_bytes_only_so_often() -> None:
    # Each header claims the rest of the file and has a wrong checksum.
    fake = bytearray(TWO[:61])
    content = bytearray()
    for _ in range(200):
        fake[8:12] = (61 * 200 - len(content) - 12).to_bytes(4, "big")
        content += fake
    reads = []
    whole = file_of(bytes(content)).read_at

    def counted(position: int, length: int) -> bytes:
        reads.append(length)
        return whole(position, length)

    assert find_next_batch(_Counted(len(content), counted), 0) is None
    assert sum(reads) < 10 * len(content) + 200 * 21


@given(st.binary(max_size=300), st.integers(1, 200))
def test_any_bytes_are_scanned_or_refused(content: bytes, chunk_bytes: int) -> None:
    file = file_of(content)
    scan = scan_batches(file, chunk_bytes=chunk_bytes)
    try:
        for _ in scan:
            pass
    except CorruptRecord:
        pass
    assert scan.position + scan.trailing_bytes == len(content)
    find_next_batch(file, 0, chunk_bytes=chunk_bytes)


@pytest.mark.parametrize("chunk_bytes", [1, 61, 200, 1 << 20])
def test_a_frame_has_the_bytes_of_its_batch_alone(chunk_bytes: int) -> None:
    scan = scan_batches(file_of(ONE + TWO + BIG + ONE), chunk_bytes=chunk_bytes)
    assert [ONE, TWO, BIG, ONE] == [bytes(view) for _, view in scan.iter_frames()]


@given(st.integers(17, len(ONE)))
def test_resync_checks_files_shorter_than_a_header(size: int) -> None:
    # What begins like a header and is cut off in it is no batch.
    for start in range(20):
        assert find_next_batch(file_of((b"\x02" * start + ONE)[: size - 1]), 0) is None
