"""Records of a running cluster: what commands do with points, sizes and names at the edge."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shell import KCTL, Shell


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    shell = Shell(tmp_path_factory.mktemp("records"))
    shell.ok("cluster", "start", "--port", "0")
    shell.ok("topics", "create", "three", "empty", "-p", "1")
    shell.ok("produce", "three", stdin="a\nb\nc\n")
    yield shell
    shell.run("cluster", "stop")


def test_records_that_are_too_large_fail_alone(shell: Shell) -> None:
    shell.ok("topics", "create", "narrow", "-p", "1", "-c", "max.message.bytes=2000")
    lines = ["small 1", "X" * 5_000, "Y" * 5_000, "small 2", "small 3"]
    done = shell.run("produce", "narrow", stdin="\n".join(lines) + "\n")
    assert 1 == done.returncode
    assert ["line 2", "line 3"] == [w for w in ("line 2", "line 3", "line 4") if w in done.stderr]
    assert "OUT_OF_ORDER" not in done.stderr
    assert "small 1\nsmall 2\nsmall 3\n" == shell.ok("consume", "narrow", "-e")


@pytest.mark.parametrize("point", ["latest-tiered", "earliest-local", "start"])
def test_nothing_lies_before_a_point_that_is_nowhere(shell: Shell, point: str) -> None:
    (row,) = json.loads(
        shell.ok("records", "delete", "three", "--before", point, "--dry-run", "-o", "json")
    )
    assert (0, 0) == (row["before_offset"], row["offsets_lost"])
    assert "a\nb\nc\n" == shell.ok("consume", "three", "-e", "--from", point)
    assert "" == shell.ok("consume", "three", "--until", point)


@pytest.mark.parametrize(
    ("topic", "point", "expected"),
    [
        ("three", "latest-tiered", None),
        ("three", "earliest-local", 0),
        ("empty", "max-timestamp", None),
        ("empty", "-1h", 0),
        ("three", "@9000000000000", 3),
    ],
)
def test_a_point_that_is_nowhere_has_no_offset(
    shell: Shell, topic: str, point: str, expected: int | None
) -> None:
    (row,) = json.loads(shell.ok("offsets", "get", topic, "--at", point, "-o", "json"))
    assert expected == row["offset"]


def test_a_poisonous_record_ends_no_command(shell: Shell) -> None:
    shell.ok("topics", "create", "poison", "-p", "1")
    deep = "[" * 100_000 + "]" * 100_000
    shell.ok("produce", "poison", stdin=f'{deep}\n"\\ud800"\n{{"a": 1}}\n')
    found = shell.run("consume", "poison", "-e", "--json-path", "$..a")
    assert (1, '{"a": 1}\n') == (found.returncode, found.stdout)
    assert "offset 0: left out by --json-path: it is nested more than" in found.stderr
    folder = f"{shell.status()['data']}/broker-1/poison-0"
    for words in (("--value-decoder-class", "json"), ("--json-path", "$..a")):
        done = shell.run("dump-log", folder, "--print-data-log", "-o", "ndjson", *words)
        assert '{"a": 1}' == json.loads(done.stdout.splitlines()[-1])["value"], done.stderr
        assert "internal" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        "topics describe nosuch --match three",
        "topics alter nosuch --match three -c retention.ms=1 --dry-run",
        "topics delete nosuch --match three --dry-run",
        "topics configs nosuch --match three",
        "topics list nosuch --match three",
        "leaders list nosuch",
        "leaders list three:99",
        "leaders elect preferred three:99",
        "leaders elect preferred nosuch",
        "leaders list nosuch --match three",
        "offsets get three:99",
        "offsets get nosuch --match three",
        "records delete three:99 --before end --dry-run",
        "consume nosuch -e",
        "consume three:99 -e",
        "retention plan nosuch three",
        "compact plan nosuch",
        "configs describe --topic nosuch",
        "configs describe --topic three no.such.key",
        "configs describe --broker 99",
        "brokers describe 99",
        "brokers log-dirs 99",
        "brokers log-dirs --topic nosuch",
        "explain partition three:99",
        "explain partition nosuch:0",
        "check --ignore nosuch",
        "context delete nosuch",
        "cluster kill 99",
    ],
)
def test_a_name_that_is_not_there_is_an_error(shell: Shell, words: str) -> None:
    done = shell.run(*words.split())
    assert done.returncode in (1, 2), done.stdout
    assert any(name in done.stderr for name in ("nosuch", "99", "no.such.key"))


def test_a_name_that_is_not_in_a_directory_is_an_error(shell: Shell, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(f"{shell.status()['data']}/broker-1", copy)
    (copy / ".lock").unlink(missing_ok=True)
    before = sorted(str(path) for path in copy.rglob("*"))
    for words in (
        "retention run nosuch --in-place -y --set retention.ms=1",
        "retention plan nosuch",
        "compact run nosuch --in-place -y",
        "compact plan nosuch",
    ):
        done = shell.run(*words.split(), "--dir", str(copy))
        assert (1, True) == (done.returncode, "nosuch" in done.stderr), words
    # Nothing was meant, so nothing was touched.
    assert before == sorted(str(path) for path in copy.rglob("*"))
    done = shell.run("retention", "run", "nosuch", "three", "--in-place", "-y", "--dir", str(copy))
    assert (1, True) == (done.returncode, "of 1 partition" in done.stderr)


@pytest.mark.parametrize("noun", ["retention", "compact"])
def test_a_copy_goes_beside_what_it_is_made_of(shell: Shell, tmp_path: Path, noun: str) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(f"{shell.status()['data']}/broker-1", copy)
    (tmp_path / "link").symlink_to(copy)
    for target in (copy, copy / "sub", tmp_path / "link" / "sub"):
        done = shell.run(noun, "run", "three", "--dir", str(copy), "--out", str(target))
        assert (2, True) == (done.returncode, "lies inside" in done.stderr), done.stderr
    assert not (copy / "sub").exists()


def test_bytes_that_are_not_utf8_stay_what_they_are(shell: Shell) -> None:
    shell.ok("topics", "create", "bytes", "-p", "1")
    shell.ok("produce", "bytes", "-H", "\udcffname=\udcfe", stdin="value\n")
    folder = f"{shell.status()['data']}/broker-1/bytes-0"
    assert b"\xffname" in (Path(folder) / "00000000000000000000.log").read_bytes()
    done = subprocess.run(
        [*KCTL, "consume", "bytes", "-e", "-f", b"\xff%s\\n"],
        env=shell.environment,
        capture_output=True,
        check=True,
    )
    assert b"\xffvalue\n" == done.stdout
    row = '{"value": "x", "headers": [{"key": "\\ud800", "value": "y"}]}\n'
    refused = shell.run("produce", "bytes", "--input", "ndjson", stdin=row)
    assert (1, True) == (refused.returncode, "line 1: a header's key has half" in refused.stderr)
    for line in ("cluster start --set \udcff=1", "configs set --topic bytes \udcff=1"):
        done_text = shell.run(*line.split())
        assert "internal" not in done_text.stderr
        assert done_text.returncode in (1, 2)


def test_offsets_at_the_edge_are_reported(shell: Shell) -> None:
    refused = shell.run("consume", "three", "--from", "9" * 20, "-e")
    assert (2, True) == (refused.returncode, "0 to 9223372036854775807" in refused.stderr)
    beyond = shell.run("consume", "three", "--from", "4", "-e")
    assert (1, True) == (beyond.returncode, "OFFSET_OUT_OF_RANGE" in beyond.stderr)
    assert "" == shell.ok("consume", "three", "--from", "3", "-e")


def test_what_check_finds_says_since_when_by_an_address_too(shell: Shell) -> None:
    shell.ok("topics", "create", "unsafe", "-p", "1")
    shell.ok("configs", "set", "--topic", "unsafe", "min.insync.replicas=2")
    address = shell.status()["bootstrap_servers"].replace("127.0.0.1", "localhost")
    rows = json.loads(shell.run("check", "unsafe", "-o", "json", "-b", address).stdout)
    assert rows
    assert [] == [row for row in rows if "-0" in row["subject"] and row["since"] is None]


def test_folders_that_an_installation_makes_are_reported(shell: Shell, tmp_path: Path) -> None:
    target = tmp_path / "some" / "bin"
    first = shell.run("compat", "install", str(target))
    assert (0, f"made {tmp_path / 'some'}, which was not there\n") == (
        first.returncode,
        first.stderr,
    )
    assert "" == shell.run("compat", "install", str(target)).stderr


def test_advice_beyond_64_bits_is_refused_and_stays_within_them(shell: Shell) -> None:
    refused = shell.run("retention", "plan", "three", "--advise", "9" * 30)
    assert (2, True) == (refused.returncode, "at most 9223372036854775807" in refused.stderr)
    rows = json.loads(
        shell.ok("retention", "plan", "three", "--advise", f"{(1 << 63) - 1}", "-o", "json")
    )
    for row in rows:
        assert row["retention_bytes"] < 1 << 63
        assert row["retention_ms"] is None or row["retention_ms"] < 1 << 63
