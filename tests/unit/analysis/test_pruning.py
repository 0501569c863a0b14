"""What is read of logs by the conditions of a query."""

from __future__ import annotations

import pytest

from engine.analysis.pruning import bounds_of, within
from engine.analysis.splits import Split


def _split(topic: str, partition: int, base_offset: int, next_base: int | None) -> Split:
    return Split(
        path=f"{topic}-{partition}/{base_offset}", dir="d", topic=topic, partition=partition,
        base_offset=base_offset, start=0, end=100, is_last=True, log_start_offset=0,
        next_base=next_base,
    )  # fmt: skip


_SPLITS = [
    _split("a", 0, 0, 100),
    _split("a", 0, 100, 200),
    _split("a", 0, 200, None),
    _split("a", 1, 0, None),
    _split("b", 0, 50, None),
]


@pytest.mark.parametrize(
    ("conditions", "kept"),
    [
        ([], [0, 1, 2, 3, 4]),
        (["(topic = 'a')"], [0, 1, 2, 3]),
        (["optional: (topic IN ('a', 'b'))", "(partition = 1)"], [3]),
        (["optional: ((topic = 'b') OR (topic = 'c'))"], [4]),
        (["(topic = 'a')", "(topic = 'b')"], []),
        (["((offset >= 100) AND (offset < 200))"], [1, 3, 4]),
        (["(offset > 199)"], [2, 3, 4]),
        (["(offset > 198)"], [1, 2, 3, 4]),
        (["(offset = 99)"], [0, 3, 4]),
        (["(offset <= 49)"], [0, 3]),
        (["(offset < 50)"], [0, 3]),
        (["(offset IN (100, 150))"], [1, 3, 4]),
        (["(partition >= 1)"], [3]),
        (["(partition < 1)", "(partition != 0)"], [0, 1, 2, 4]),
        (["(offset > -5)"], [0, 1, 2, 3, 4]),
        # What is not understood narrows nothing.
        (["((topic = 'b') OR (partition = 1))"], [0, 1, 2, 3, 4]),
        (["((offset = 3) OR (offset > 500))"], [0, 1, 2, 3, 4]),
        (["(topic IN ('b', lower('A')))"], [0, 1, 2, 3, 4]),
        (["(lower(topic) = 'b')"], [0, 1, 2, 3, 4]),
        (["(baseOffset = 7)", "not SQL at all ("], [0, 1, 2, 3, 4]),
        (["(decoded_value.customer's name = 'b')", "(topic = 'b')"], [4]),
        # A field of a column has the name of another one.
        (["(decoded_value.topic = 'b')", "(decoded_key.user.partition = 1)"], [0, 1, 2, 3, 4]),
        (["(decoded_value.offset IN (3, 4))", "(topic = 'b')"], [4]),
        (["(offset > 1.5)", "(topic > 'a')"], [0, 1, 2, 3, 4]),
    ],
)
def test_only_splits_that_can_have_rows_are_kept(conditions: list[str], kept: list[int]) -> None:
    assert [_SPLITS[n] for n in kept] == within(_SPLITS, bounds_of(conditions))
