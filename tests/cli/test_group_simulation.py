"""`kctl groups simulate` as a process: what it prints without a cluster, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from engine.assignors.registry import ASSIGNORS
from kctl.schemas import schema_of
from tests.cli.shell import Shell

_GROUP = ("--topic", "orders:4", "--topic", "payments:3", "--member", "c0", "--member", "c1")


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_each_partition_is_a_row_of_the_schema(tmp_path: Path, assignor: str) -> None:
    words = (*_GROUP, "--join", "c2", "--assignor", assignor, "-o", "json")
    rows = json.loads(Shell(tmp_path).ok("groups", "simulate", *words))
    Draft202012Validator(schema_of("groups simulate")).validate(rows)
    assert 7 == len(rows)
    assert {"c0", "c1", "c2"} == {row["member_after"] for row in rows}


def test_a_table_shows_what_moves_and_what_is_given_up(tmp_path: Path) -> None:
    words = ("--assignor", "cooperative-sticky", "--leave", "c1", "--join", "c2=orders")
    done = Shell(tmp_path).run("groups", "simulate", *_GROUP, *words)
    assert "4 partitions of 7 would go to another member; 1 revoked, 2 rebalances" in done.stderr
    assert [
        "TOPIC PARTITION MEMBER AFTER MOVES REVOKED",
        "orders 0 c0 c2 yes yes",
        "orders 1 c1 c2 yes no",
        "orders 2 c0 c0 no no",
        "orders 3 c1 c2 yes no",
        "payments 0 c0 c0 no no",
        "payments 1 c1 c0 yes no",
        "payments 2 c0 c0 no no",
    ] == [" ".join(line.split()) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    "words", [("--assignor", "best"), ("--leave", "c9"), ("--rack", "c9=r1"), ("--topic", "t")]
)
def test_what_cannot_be_is_refused(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = Shell(tmp_path).run("groups", "simulate", *_GROUP, *words)
    assert (2, "") == (done.returncode, done.stdout)
