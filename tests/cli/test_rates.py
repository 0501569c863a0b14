"""Rates of writes: shown for topics and partitions, and levelled by plans."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.shell import Shell

LINE = b"x" * 999 + b"\n"


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    shell = Shell(tmp_path_factory.mktemp("home"))
    shell.ok("cluster", "start", "--brokers", "3", "--port", "0")
    shell.ok("topics", "create", "hot", "--replica-assignment", "1:2,1:2,2:1")
    shell.ok("topics", "create", "cold", "--replica-assignment", "3:1,3:2,3:1")
    yield shell
    shell.run("cluster", "destroy", "-y")


@contextmanager
def written(shell: Shell, topic: str, partition: int, *, each_s: float = 0.02) -> Iterator[None]:
    """Have a producer write about 50 kB each second to a partition."""
    words = ("produce", topic, "-p", str(partition), "--linger", "0")
    over = threading.Event()
    with shell.popen(*words) as process:
        assert process.stdin is not None
        pipe = process.stdin.buffer

        def write() -> None:
            while not over.wait(each_s):
                pipe.write(LINE)
                pipe.flush()

        writer = threading.Thread(target=write)
        writer.start()
        try:
            yield
        finally:
            over.set()
            writer.join()
            process.stdin.close()
            process.wait()


def test_topics_show_their_rate_and_their_hottest_partition(shell: Shell) -> None:
    with written(shell, "hot", 1):
        rows = json.loads(shell.ok("topics", "list", "--rate-window", "2", "-o", "json"))
        described = json.loads(
            shell.ok("topics", "describe", "hot", "--rate", "--rate-window", "1", "-o", "json")
        )
    hot, cold = ({row["name"]: row for row in rows}[name] for name in ("hot", "cold"))
    assert 10_000 < hot["bytes_per_s"] < 100_000
    assert 10 < hot["records_per_s"] < 100
    assert (1, hot["bytes_per_s"]) == (hot["hottest_partition"], hot["hottest_bytes_per_s"])
    assert (0, None, False) == (
        cold["bytes_per_s"],
        cold["hottest_partition"],
        cold["is_estimate"],
    )
    rates = [partition["bytes_per_s"] for partition in described[0]["partitions"]]
    assert [0, 0] == [rates[0], rates[2]]
    assert rates[1] > 10_000
    assert "bytes_per_s" not in json.loads(shell.ok("topics", "list", "-o", "json"))[0]


def test_a_balance_levels_rates_and_is_repeated_by_the_samples_of_its_file(shell: Shell) -> None:
    plan, second, third = (str(shell.home / name) for name in ("plan", "second", "third"))
    with written(shell, "hot", 0), written(shell, "hot", 1):
        words = ("reassign", "plan", "--balance", "--rate-window", "2", "--out", plan)
        done = shell.run(*words, "-o", "json")
    assert 0 == done.returncode, done.stderr
    assert "Kafka does not report what consumers fetch" in done.stderr
    brokers = {row["broker_id"]: row for row in json.loads(done.stdout)}
    assert brokers[1]["in_bytes_per_s_before"] > 20_000
    assert 0 == brokers[3]["in_bytes_per_s_before"]
    # Two copies of two partitions: the third broker takes one of the four.
    assert brokers[3]["in_bytes_per_s_after"] > 20_000
    # Sizes have gone on, so the samples are of another plan; from now on nothing changes.
    for path in (second, third):
        shell.ok("reassign", "plan", "--balance", "--rates", plan, "--out", path)
    one, other = (json.loads(Path(path).read_text()) for path in (second, third))
    assert one["partitions"] == other["partitions"]
    assert one["kctl"]["rates"] == other["kctl"]["rates"]
    shell.ok("reassign", "execute", second, "-y")
    settled = shell.run("reassign", "plan", "--balance", "--rates", plan)
    assert "nothing is to be done" in settled.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--drain 3 --goals counts", "an option of --drain"),
        ("--drain 3 --rate-window 1", "an option of --drain"),
        ("--balance --goals heat", "counts, bytes, leaders, bytes-in, bytes-out"),
        ("--balance --goals counts --rate-window 1", "goals on rates"),
        ("--balance --rates p --rate-window 1", "one source of rates"),
        ("--balance --rate-window 0", "--rate-window"),
    ],
)
def test_options_without_an_effect_are_refused(shell: Shell, words: str, message: str) -> None:
    done = shell.run("reassign", "plan", *words.split())
    assert 2 == done.returncode
    assert message in done.stderr


def test_a_plan_without_samples_gives_no_rates(shell: Shell) -> None:
    plan = str(shell.home / "plain.json")
    shell.ok("reassign", "plan", "--balance", "--goals", "leaders", "--out", plan)
    done = shell.run("reassign", "plan", "--balance", "--rates", plan)
    assert 1 == done.returncode
    assert "has no samples of rates" in done.stderr
