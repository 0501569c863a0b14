"""Damage in a log costs what is damaged, and is said."""

from __future__ import annotations

import random
import zlib
from typing import Any

import pytest

from engine.analysis.batch_reader import SplitReader
from engine.analysis.splits import Split
from engine.host.memory import MemoryFiles
from engine.host.ports import File
from engine.records.builder import BatchBuilder, BatchSettings

PATH = "/logs/t-0/00000000000000000000.log"


def _batches(count: int = 6) -> list[bytes]:
    found = []
    for n in range(count):
        builder = BatchBuilder(BatchSettings(base_offset=10 * n))
        for k in range(10):
            builder.append(1_700_000_000_000, b"k%d" % k, b"v" * 50)
        found.append(bytes(builder.build()))
    return found


def _reader(
    raw: bytes, *, is_last: bool = True, end: int | None = None, epochs: tuple[Any, ...] = ()
) -> SplitReader:
    files = MemoryFiles()
    files.make_dir("/logs/t-0")
    files.replace_file(PATH, raw)
    size = len(raw) if end is None else end
    split = Split(PATH, "/logs", "t", 0, 0, 0, size, is_last, 0, epochs=epochs)
    return SplitReader(files.open(PATH), split)


def _offsets(reader: SplitReader) -> list[int]:
    return [batch.base_offset for _, batch, _ in reader.batches()]


def test_a_wrong_crc_costs_its_batch_only() -> None:
    batches = _batches()
    batches[2] = batches[2][:-3] + b"xyz"
    reader = _reader(b"".join(batches))
    assert [0, 10, 30, 40, 50] == _offsets(reader)
    assert ["bad_crc", "lost"] == [p.code for p in reader.problems]
    assert len(batches[0]) * 2 == reader.problems[0].position


def test_a_wrong_size_costs_its_batch_only() -> None:
    for length in (0, 13, -5, 1 << 30, 200):
        batches = _batches()
        batches[2] = batches[2][:8] + length.to_bytes(4, "big", signed=True) + batches[2][12:]
        reader = _reader(b"".join(batches))
        found = _offsets(reader)
        assert {0, 10, 30, 40, 50} <= set(found)
        assert 20 not in found
        assert reader.problems


def test_a_cut_off_batch_at_the_end_is_a_torn_tail() -> None:
    reader = _reader(b"".join(_batches())[:-7])
    assert [0, 10, 20, 30, 40] == _offsets(reader)
    assert ["torn_tail"] == [p.code for p in reader.problems]


def test_zeroes_at_the_end_are_a_torn_tail() -> None:
    reader = _reader(b"".join(_batches()) + bytes(5000))
    assert 6 == len(_offsets(reader))
    assert [("torn_tail", 5000)] == [(p.code, p.bytes) for p in reader.problems]


def test_a_batch_belongs_to_the_split_in_which_it_starts() -> None:
    batches = _batches()
    raw = b"".join(batches)
    reader = _reader(raw, is_last=False, end=len(batches[0]) + 5)
    assert [0, 10] == _offsets(reader)
    assert [] == reader.problems


def test_any_damage_ends_in_batches_and_problems() -> None:
    source = random.Random(3)
    raw = b"".join(_batches())
    for _ in range(300):
        damaged = bytearray(raw)
        for _ in range(source.randint(1, 4)):
            damaged[source.randrange(len(damaged))] = source.randrange(256)
        cut = bytes(damaged[: source.choice([len(raw), source.randrange(len(raw))])])
        reader = _reader(cut)
        offsets = _offsets(reader)
        assert len(offsets) + len(reader.problems) >= 1 or not cut
        assert len(offsets) <= 6


@pytest.mark.parametrize("bit", range(32))
def test_a_flipped_bit_of_a_length_costs_its_batch_only(bit: int) -> None:
    batches = _batches(60)
    damaged = bytearray(batches[2])
    damaged[8 + bit // 8] ^= 1 << bit % 8
    reader = _reader(b"".join([*batches[:2], bytes(damaged), *batches[3:]]))
    assert [10 * n for n in range(60) if n != 2] == _offsets(reader)
    assert "lost" in [p.code for p in reader.problems]
    (lost,) = [p for p in reader.problems if p.code == "lost"]
    assert "offsets 20 to 29" in lost.message


def test_a_length_that_leads_to_another_batch_hides_none() -> None:
    batches = _batches(60)
    for covered in (2, 5, 57):
        length = sum(map(len, batches[2 : 2 + covered])) + (len(batches[59]) if covered > 56 else 0)
        damaged = batches[2][:8] + (length - 12).to_bytes(4, "big") + batches[2][12:]
        reader = _reader(b"".join([*batches[:2], damaged, *batches[3:]]))
        assert [10 * n for n in range(60) if n != 2] == _offsets(reader)


def test_a_batch_in_the_value_of_a_damaged_batch_is_not_taken_for_one_of_the_log() -> None:
    inner = _batches(3)
    builder = BatchBuilder(BatchSettings(base_offset=0))
    builder.append(1_700_000_000_000, b"k", inner[2])
    outer = bytearray(builder.build())
    outer[-1] ^= 1
    following = BatchBuilder(BatchSettings(base_offset=1))
    following.append(1_700_000_000_000, b"k", b"v")
    reader = _reader(bytes(outer) + bytes(following.build()))
    assert [1] == _offsets(reader)


@pytest.mark.parametrize("bit", range(64))
@pytest.mark.parametrize("number", [0, 3, 5])
def test_a_flipped_bit_of_a_base_offset_is_never_a_good_batch(number: int, bit: int) -> None:
    batches = _batches()
    damaged = bytearray(batches[number])
    damaged[7 - bit // 8] ^= 1 << bit % 8
    reader = _reader(b"".join([*batches[:number], bytes(damaged), *batches[number + 1 :]]))
    assert [10 * n for n in range(6) if n != number] == _offsets(reader)
    assert "bad_offset" in [p.code for p in reader.problems]


def _legacy_log(magic: int) -> list[bytes]:
    """Return 30 messages of magic 0 or 1."""
    found = []
    for n in range(30):
        times = (1_700_000_000_000 + n).to_bytes(8, "big") if magic else b""
        body = (
            bytes((magic, 0))
            + times
            + b"".join(len(part).to_bytes(4, "big") + part for part in (b"k%02d" % n, b"v" * 40))
        )
        message = zlib.crc32(body).to_bytes(4, "big") + body
        found.append(n.to_bytes(8, "big") + len(message).to_bytes(4, "big") + message)
    return found


@pytest.mark.parametrize("bit", range(32))
@pytest.mark.parametrize("magic", [0, 1])
def test_a_flipped_bit_of_an_old_message_size_costs_its_message_only(magic: int, bit: int) -> None:
    messages = _legacy_log(magic)
    damaged = bytearray(messages[2])
    damaged[8 + bit // 8] ^= 1 << bit % 8
    reader = _reader(b"".join([*messages[:2], bytes(damaged), *messages[3:]]))
    assert [n for n in range(30) if n != 2] == _offsets(reader)
    assert "lost" in [p.code for p in reader.problems]


def _with_epochs(epochs: list[int]) -> list[bytes]:
    return [
        batch[:12] + epoch.to_bytes(4, "big", signed=True) + batch[16:]
        for batch, epoch in zip(_batches(len(epochs)), epochs, strict=True)
    ]


@pytest.mark.parametrize(
    ("epochs", "bad"),
    [
        ([0, 0, 2, 2], []),
        ([0, 0, 2, 3], [3]),
        ([0, 1, 2, 2], [1]),
        ([0, 0, 0, 2], [2]),
        ([0, 0, 2, 0], [3]),
        ([2, 0, 2, 2], [0]),
        ([0, 0, -7, 2], [2]),
    ],
)
def test_a_leader_epoch_is_held_to_its_neighbours_and_the_checkpoint(
    epochs: list[int], bad: list[int]
) -> None:
    batches = _with_epochs(epochs)
    reader = _reader(b"".join(batches), epochs=((0, 0), (2, 20)))
    assert 4 == len(_offsets(reader))
    assert bad == [p.position // len(batches[0]) for p in reader.problems]
    assert {"bad_epoch"} >= {p.code for p in reader.problems}


@pytest.mark.parametrize(
    ("bases", "given"),
    [
        # The second one says of itself that it comes before the first: one of the two is wrong.
        ([10, 0, 90, 100], [90, 100]),
        ([10, 0, 10, 20], [0, 10, 20]),
        ([0, 50, 40, 90, 100], [0, 90, 100]),
        ([0, 50, 40, 50, 60], [0, 40, 50, 60]),
        ([0, 10, 20, 90], [0, 10, 20]),
        ([0, 50, 70, 90], [0, 50, 70, 90]),
    ],
)
def test_of_two_batches_that_contradict_each_other_one_needs_a_third(
    bases: list[int], given: list[int]
) -> None:
    batches = [base.to_bytes(8, "big") + _batches(1)[0][8:] for base in bases]
    reader = _reader(b"".join(batches))
    assert given == _offsets(reader)
    refused = [p.code for p in reader.problems if p.code == "bad_offset"]
    assert len(bases) - len(given) == len(refused)


class _Unsearched:
    """A file that is read from its start to its end, and nowhere else."""

    def __init__(self, file: File) -> None:
        self.path = file.path
        self.size_bytes = file.size_bytes
        self.read_into = file.read_into

    def read_at(self, position: int, length: int) -> bytes:
        raise AssertionError(f"{length} bytes at {position} were read again")


@pytest.mark.parametrize("magic", [0, 1])
def test_old_messages_in_order_are_read_once(magic: int) -> None:
    raw = b"".join(_legacy_log(magic))
    files = MemoryFiles()
    files.make_dir("/logs/t-0")
    files.replace_file(PATH, raw)
    file = _Unsearched(files.open(PATH))
    reader = SplitReader(file, Split(PATH, "/logs", "t", 0, 0, 0, len(raw), True, 0))
    assert list(range(30)) == _offsets(reader)
