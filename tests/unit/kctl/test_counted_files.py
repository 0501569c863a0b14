"""Files that tell how much is read of them."""

from __future__ import annotations

from kctl.counted_files import CountedFiles
from tests.golden_cases import case_dir


def test_reads_of_a_counted_file_are_reported_and_are_those_of_the_file() -> None:
    path = str(case_dir("plain") / "data/clicks-0/00000000000000000000.log")
    counts: list[int] = []
    file = CountedFiles(counts.append).open(path)
    buffer = bytearray(100)
    content = file.read_at(0, 50)
    assert (50, 100) == (len(content), file.read_into(0, buffer))
    assert content == bytes(buffer[:50])
    assert counts == [50, 100]
    assert file.fileno() is None
    assert file.size_bytes() > 100
    file.close()
