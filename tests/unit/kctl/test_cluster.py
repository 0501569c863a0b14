"""A plain `kctl cluster start` is read without Typer, and means the same."""

from __future__ import annotations

from typing import Any

import pytest
from typer.main import get_command

from kctl.commands.cluster.start_arguments import parse_simple_start
from kctl.commands.cluster.typer_app import app


def _by_typer(args: list[str]) -> dict[str, Any]:
    start = get_command(app).commands["start"]  # type: ignore[attr-defined]
    found = start.make_context("start", list(args)).params
    lists = {name: list(found[name] or ()) for name in ("settings", "unset")}
    return {**found, **lists, "timeout_s": found["timeout"]}


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["--data", "/tmp/x", "--brokers", "3", "--port", "0", "-o", "json"],
        ["--set", "a=b", "--output", "yaml", "--set", "c=d=e", "--foreground"],
        ["--unset", "a", "--set", "b=c", "--unset", "d"],
        ["--processes", "--racks", "a,b"],
        ["--config", "server.properties", "--insecure", "--advertise", "kafka"],
        ["--one-process", "--processes", "--one-process"],
        ["--port", "65535", "--port", "007", "--data", "a", "--data", "b"],
    ],
)
def test_a_plain_start_is_read_as_typer_reads_it(args: list[str]) -> None:
    expected = _by_typer(args)
    expected.pop("timeout")
    assert expected == parse_simple_start(args)


@pytest.mark.parametrize(
    "args",
    [
        ["--help"], ["-h"], ["--port"], ["--port", "x"], ["--port", "-1"], ["--port", "65536"],
        ["--port", "²"], ["--brokers", "0"], ["--data=/tmp"], ["--timeout", "5"], ["--data", "-x"],
        ["word"], ["word", "word"], ["--prot", "9092"], ["--foreground", "yes"], ["--", "a"],
    ],
)  # fmt: skip
def test_a_start_with_anything_else_is_left_to_typer(args: list[str]) -> None:
    assert parse_simple_start(args) is None
