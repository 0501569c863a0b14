"""The topic and the partition that rows of a dump name."""

from __future__ import annotations

import pytest

from engine.dump.rows import _parse_partition


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/data/t-0/0.log", ("t", 0)),
        ("/data/a-b-12/0.log", ("a-b", 12)),
        ("/data/t-²/0.log", (None, None)),
        ("/data/t/0.log", (None, None)),
        ("0.log", (None, None)),
    ],
)
def test_rows_have_the_topic_and_partition_of_a_folder_that_is_named_by_them(
    path: str, expected: tuple[str | None, int | None]
) -> None:
    assert expected == _parse_partition(path)
