"""`kctl consume` as a process: what is printed while it runs, and however it ends."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from tests.cli.shell import KCTL, Shell


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    shell.ok("cluster", "start", "--port", "0")
    shell.ok("topics", "create", "clicks")
    shell.ok("produce", "clicks", stdin="one\n\x1b[31mtwo\n")
    yield shell
    shell.run("cluster", "stop")


def lines_of(stream: IO[str] | None, count: int) -> list[str]:
    assert stream is not None
    return [stream.readline() for _ in range(count)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_table_shows_records_as_they_come_and_ends_in_order(shell: Shell, number: int) -> None:
    with shell.popen("consume", "clicks", "-o", "table") as consumer:
        heading, one, two = lines_of(consumer.stdout, 3)
        assert ("TOPIC", "one", "\\x1b[31mtwo") == (
            heading.split()[0], one.split()[-1], two.split()[-1],
        )  # fmt: skip
        shell.ok("produce", "clicks", stdin="three\n")
        assert "three" == lines_of(consumer.stdout, 1)[0].split()[-1]
        consumer.send_signal(number)
        assert 128 + number == consumer.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_document_that_is_ended_by_a_signal_is_whole(shell: Shell, number: int) -> None:
    with shell.popen("consume", "clicks", "-o", "json") as consumer:
        first = lines_of(consumer.stdout, 2)
        consumer.send_signal(number)
        assert consumer.stdout is not None
        rest = consumer.stdout.read()
    assert ["one", "\x1b[31mtwo"] == [row["value"] for row in json.loads("".join(first) + rest)]


def test_values_reach_a_pipe_as_they_are_and_a_terminal_escaped(shell: Shell) -> None:
    assert "one\n\x1b[31mtwo\n" == shell.ok("consume", "clicks", "-e")
    assert b"one\r\n\\x1b[31mtwo\r\n" == on_a_terminal(shell, "consume", "clicks", "-e")
    assert b"one\r\n\x1b[31mtwo\r\n" == on_a_terminal(shell, "consume", "clicks", "-e", "--raw")


def test_a_dump_steers_no_terminal(shell: Shell) -> None:
    folder = f"{shell.status()['data']}/broker-1/clicks-0"
    words = ("dump-log", "--print-data-log", folder)
    assert "payload: \x1b[31mtwo\n" in shell.ok(*words)
    assert b"payload: \\x1b[31mtwo\r\n" in on_a_terminal(shell, *words)


def on_a_terminal(shell: Shell, *words: str) -> bytes:
    ours, its = pty.openpty()
    done = subprocess.run([*KCTL, *words], stdout=its, env=shell.environment, check=False)
    os.close(its)
    assert 0 == done.returncode
    shown = os.read(ours, 1 << 16)
    os.close(ours)
    return shown


def test_records_are_picked_by_what_is_in_them(shell: Shell) -> None:
    shell.ok("topics", "create", "docs")
    pairs = 'a|{"id": 5}\nb|{"id": "5"}\nc|{"id": 6}\nc|no json\n'
    shell.ok("produce", "docs", "-k", "|", "-H", "h=1", stdin=pairs)
    for words, keys in (
        (("--json-path", "$.id=5"), "ab"),
        (("--json-path", "$.id"), "abc"),
        (("--key", "c"), "cc"),
        (("--key-regex", "[ab]"), "ab"),
        (("--value-regex", "6|no"), "cc"),
        (("--header", "h", "-n", "2"), "ab"),
        (("--header", "g"), ""),
    ):
        assert list(keys) == shell.ok("consume", "docs", "-e", "-f", "%k\\n", *words).split()
    refused = shell.run("consume", "docs", "-e", "--json-path", "$.[")
    assert (2, True) == (refused.returncode, "no JSONPath" in refused.stderr)
    refused = shell.run("consume", "docs", "-e", "--key-regex", "(")
    assert (2, True) == (refused.returncode, "pattern" in refused.stderr)


def test_a_restart_of_the_broker_is_waited_for_and_reported_once(shell: Shell) -> None:
    with shell.popen("consume", "clicks") as consumer:
        assert ["one\n"] == lines_of(consumer.stdout, 1)
        port = shell.status()["bootstrap_servers"].rpartition(":")[2]
        shell.ok("cluster", "stop")
        assert consumer.stderr is not None
        assert "trying again for 30 s" in consumer.stderr.readline()
        shell.ok("cluster", "start", "--port", port)
        shell.ok("produce", "clicks", stdin="three\n")
        assert "three\n" == lines_of(consumer.stdout, 2)[1]
        consumer.send_signal(signal.SIGINT)
        assert "going on\n" == consumer.stderr.read()


def test_values_are_read_by_their_schemas(shell: Shell, tmp_path: Path) -> None:
    shell.ok("topics", "create", "users")
    (tmp_path / "7.avsc").write_text('{"type": "map", "values": "long"}')
    rows = [
        {"key": "a", "value": "AAAAAAcCBGlkCgA=", "value_encoding": "base64"},
        {"key": "b", "value": "plain"},
        {"key": "c", "value": "AAAAAAk=", "value_encoding": "base64"},
        {"key": "d", "value": None},
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    shell.ok("produce", "users", "--input", "ndjson", stdin=lines)
    consume = ("consume", "users", "-e", "--schemas", str(tmp_path))
    text = shell.run(*consume, "-f", "%k=%s\\n")
    assert 'a={"id": 5}\nb=plain\nc=\0\0\0\0\x09\nd=\n' == text.stdout
    assert (1, 1) == (text.returncode, text.stderr.count("has no schema 9"))
    shown = shell.run(*consume, "-o", "ndjson").stdout.splitlines()
    assert [{"id": 5}, None, None, None] == [json.loads(row)["decoded_value"] for row in shown]
    assert "\0\0\0\0\x07\x02\x04id\n\0" == json.loads(shown[0])["value"]
    picked = shell.run(*consume, "--json-path", "$.id=5", "-f", "%k\\n")
    assert "a\n" == picked.stdout
