"""The text checkpoints: of offsets, and of leader epochs."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import CorruptFile
from engine.host.memory import MemoryFiles
from engine.log.directory import small_file
from engine.log.directory.leader_epoch_checkpoint import (
    EpochStart,
    assign_epoch,
    encode_leader_epochs,
    end_offset_for,
    parse_leader_epochs,
    truncate_from_start,
    truncated_from_end,
)
from engine.log.directory.offset_checkpoint import encode_offsets, parse_offsets
from engine.log.directory.text_checkpoint import parse_integer, parse_text_checkpoint
from engine.model import TopicPartition

RISING = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 50)), max_size=6).map(
    lambda steps: tuple(
        EpochStart(sum(s[0] for s in steps[: n + 1]), sum(s[1] for s in steps[: n + 1]))
        for n in range(len(steps))
    )
)
EPOCHS = (EpochStart(0, 0), EpochStart(2, 40), EpochStart(5, 61))


def test_offsets_keep_their_order() -> None:
    offsets = {TopicPartition("b", 1): 7, TopicPartition("a.b-c", 0): -1}
    assert encode_offsets(offsets) == b"0\n2\nb 1 7\na.b-c 0 -1\n"
    assert parse_offsets(encode_offsets(offsets), "x") == offsets


@pytest.mark.parametrize("content", [b"", b"0\n", b"0\n0\n"])
def test_a_checkpoint_may_have_no_entries(content: bytes) -> None:
    assert parse_offsets(content, "x") == {}


def test_lines_end_as_java_reads_them_and_the_last_of_two_counts() -> None:
    assert parse_offsets(b"0\r\n2\ra  0\t5\na 0 6", "x") == {TopicPartition("a", 0): 6}


@pytest.mark.parametrize(
    "content",
    [
        b"1\n0\n",
        b"x\n",
        b"0\n2\na 0 1\n",
        b"0\n0\na 0 1\n",
        b"0\n1\na 0\n",
        b"0\n1\na 0 1 2\n",
        b"0\n1\na -1 5\n",
        b"0\n1\na 0 1.5\n",
        b"0\n1\na 0 " + b"9" * 5000 + b"\n",
        b"0\n1\n\n",
        b"\xff\n",
        b"0\n1\na \xd9\xa3 1\n",
    ],
)
def test_what_breaks_the_format_is_refused(content: bytes) -> None:
    with pytest.raises(CorruptFile):
        parse_offsets(content, "x")


@given(st.binary(max_size=100))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    for fields in (2, 3):
        with suppress(CorruptFile):
            parse_text_checkpoint(content, "x", fields=fields)


def test_a_file_too_large_for_a_checkpoint_is_not_read() -> None:
    files = MemoryFiles()
    files.open("f", write=True, create=True).truncate(101)
    assert small_file.read_small_file(files, "f", 101) == bytes(101)
    with pytest.raises(CorruptFile):
        small_file.read_small_file(files, "f", 100)


@given(RISING)
def test_leader_epochs_read_back(entries: tuple[EpochStart, ...]) -> None:
    assert parse_leader_epochs(encode_leader_epochs(entries), "x") == entries


@pytest.mark.parametrize("content", [b"0\n1\n-1 0\n", b"0\n1\n0 -1\n"])
def test_negative_epochs_and_offsets_are_refused(content: bytes) -> None:
    with pytest.raises(CorruptFile):
        parse_leader_epochs(content, "x")


@given(RISING, st.integers(0, 40), st.integers(0, 400))
def test_a_new_entry_removes_what_it_contradicts(
    entries: tuple[EpochStart, ...], epoch: int, start_offset: int
) -> None:
    found = assign_epoch(entries, EpochStart(epoch, start_offset))
    for earlier, later in pairwise(found):
        assert earlier.epoch < later.epoch
        assert earlier.start_offset < later.start_offset
    assert found[-1].epoch == epoch


def test_an_epoch_cannot_be_moved_up() -> None:
    assert assign_epoch(EPOCHS, EpochStart(5, 70)) == EPOCHS
    assert assign_epoch(EPOCHS, EpochStart(5, 50)) == (*EPOCHS[:2], EpochStart(5, 50))


def test_truncation_from_the_end_takes_epochs_that_start_there() -> None:
    assert truncated_from_end(EPOCHS, 61) == EPOCHS[:2]
    assert truncated_from_end(EPOCHS, 62) == EPOCHS


def test_truncation_from_the_start_moves_the_valid_epoch_up() -> None:
    assert truncate_from_start(EPOCHS, 50) == (EpochStart(2, 50), EpochStart(5, 61))
    assert truncate_from_start(EPOCHS, 40) == EPOCHS[1:]
    assert truncate_from_start((EpochStart(3, 10),), 5) == (EpochStart(3, 10),)


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [
        (-1, (-1, -1)),
        (0, (0, 40)),
        (1, (0, 40)),
        (2, (2, 61)),
        (4, (2, 61)),
        (5, (5, 100)),
        (6, (-1, -1)),
    ],
)
def test_an_epoch_ends_where_the_next_one_starts(epoch: int, expected: tuple[int, int]) -> None:
    assert end_offset_for(EPOCHS, epoch, 100) == expected


def test_an_epoch_below_all_known_ends_where_they_start() -> None:
    assert end_offset_for(EPOCHS[1:], 1, 100) == (1, 40)
    assert end_offset_for((), 1, 100) == (-1, -1)


def test_a_number_has_twenty_digits_at_most() -> None:
    assert -(10**19) == parse_integer(f"-1{'0' * 19}", "path", "a number")
    with pytest.raises(CorruptFile):
        parse_integer("1" + "0" * 20, "path", "a number")
