from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kctl.input_lines
from kctl.input_lines import InputLines, LineTooLong, input_bytes, input_lines
from kctl.interrupts import HeldInterrupts


def numbered(content: bytes) -> list[tuple[int, bytes]]:
    found = input_lines(io.BytesIO(content), HeldInterrupts(), lambda: None)
    return [
        pair
        for chunk in found
        if chunk is not None
        for pair in zip(chunk.places, chunk.lines, strict=True)
    ]


lines_of_input = st.lists(st.binary(max_size=10).filter(lambda line: b"\n" not in line))


@pytest.mark.parametrize("size", [1, 3, 1 << 17])
@given(lines=lines_of_input)
def test_lines_are_numbered_and_lose_only_their_ends(size: int, lines: list[bytes]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kctl.input_lines, "_READ_BYTES", size)
        assert list(enumerate(lines, 1)) == numbered(b"".join(line + b"\n" for line in lines))


def test_a_last_line_without_an_end_counts() -> None:
    assert [(1, b"a"), (2, b"b")] == numbered(b"a\nb")


def test_a_line_longer_than_any_record_ends_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kctl.input_lines, "PRODUCE_LINE_BYTES_MAX", 8)
    with pytest.raises(LineTooLong, match="line 2"):
        numbered(b"a\n" + b"b" * 9)


def test_a_pipe_that_pauses_is_reported() -> None:
    reader, writer = os.pipe()
    with open(reader, "rb") as stream, open(writer, "wb", buffering=0) as feeder:
        chunks = input_lines(stream, HeldInterrupts(), lambda: 0)
        assert next(chunks) is None
        feeder.write(b"a\nb")
        found = [chunk for chunk in (next(chunks), next(chunks), next(chunks)) if chunk]
        assert InputLines(1, [b"a"], 3) == found[0]


def test_of_a_file_it_is_known_how_much_there_is(tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes(b"a\nb\n")
    with open(tmp_path / "lines", "rb") as stream:
        assert 4 == input_bytes(stream)
    assert input_bytes(io.BytesIO(b"a")) is None
