"""Comparison of drawn command lines: what is masked, and what has to be seen in spite of that."""

from __future__ import annotations

import pytest

from tests.compat.tools.masking import Answer, compared, masked
from tests.compat.tools_random import Call, is_reading

_RULES = (
    "Current ACLs for resource `ResourcePattern(name={first})`: \n"
    " \t(principal=User:bob, operation=READ)\n\t(principal=User:ann, operation=READ)\n\n"
    "Current ACLs for resource `ResourcePattern(name={second})`: \n"
    " \t(principal=User:eve, operation=READ)\n\n"
)


def _compared(tool: str, stdout: str, *words: str) -> str:
    return compared(tool, list(words), Answer(0, stdout, "")).stdout


@pytest.mark.parametrize(
    "line",
    ["| offset: 3 CreateTime: 1700000000000 keySize: 2", "baseOffset: 0 crc: 4077", '{"size":5}'],
)
def test_tools_of_one_cluster_show_its_times_sums_and_sizes(line: str) -> None:
    assert line == masked("dump-log", line, "127.0.0.1:1", "/data", "/work")
    assert line != masked("topics", line, "127.0.0.1:1", "/data", "/work")


def test_rules_come_in_any_order() -> None:
    other = _RULES.format(first="a", second="b").split("\n\n")
    turned = "\n\n".join([other[1], other[0], ""])
    entry = "\t(principal=User:ann, operation=READ)\n"
    first, rest = turned.split(" \t(principal=User:bob, operation=READ)\n", 1)
    turned = f"{first} {entry}\t(principal=User:bob, operation=READ)\n{rest.removeprefix(entry)}"
    assert _compared("acls", _RULES.format(first="a", second="b")) == _compared("acls", turned)


def test_rules_of_another_resource_are_a_difference() -> None:
    one, other = _RULES.format(first="a", second="b"), _RULES.format(first="b", second="a")
    assert _compared("acls", one) != _compared("acls", other)


def test_records_of_several_partitions_come_in_any_order() -> None:
    assert _compared("console-consumer", "b\na\n", "--topic", "t") == "a\nb\n"


@pytest.mark.parametrize("words", [["--partition", "0"], ["--partition=0"]])
def test_records_of_one_partition_come_in_its_order(words: list[str]) -> None:
    assert _compared("console-consumer", "b\na\n", "--topic", "t", *words) == "b\na\n"


@pytest.mark.parametrize(
    ("tool", "words", "is_repeatable"),
    [
        ("topics", ["--describe"], True),
        ("topics", ["--create", "--topic", "t"], False),
        ("topics", ["--creat", "--topic", "t"], False),
        ("topics", ["-create", "--topic", "t"], False),
        ("configs", ["--alter=x"], False),
        ("delegation-tokens", ["--expire", "--hmac", "x"], False),
        ("features", ["downgrade", "--metadata", "3.5"], False),
        ("features", ["describe"], True),
        ("delete-records", [], False),
    ],
)
def test_only_calls_that_change_nothing_are_repeated(
    tool: str, words: list[str], *, is_repeatable: bool
) -> None:
    assert is_repeatable is is_reading(Call(tool, words, "", {}))
