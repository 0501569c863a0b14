"""The commands of the guides, each in its order."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.fork_server import NOT_FORKED, ForkServer
from tests.cli.shell import KCTL, Shell
from tests.cli.test_reassign_commands import until_moving
from tests.golden_dump import run_kctl

FORKED_KCTL = Path(__file__).with_name("forked_kctl.py")
GUIDES = Path(__file__).parents[2] / "docs/guides"
#: What the guide gives up half-way, to look at what is left. Here that is once something moves, and
#: under a throttle that lets nothing end for minutes, however slow the machine is.
GIVEN_UP = "timeout -s INT 4 "
THROTTLE, SLOW_THROTTLE = "--throttle 700kB", "--throttle 20kB"
INTERRUPTED = 130
#: A line of a guide that runs longer than this never ends.
_ENDS_S = 140


def commands(guide: str) -> list[str]:
    """Return the command lines of a guide."""
    blocks = re.findall(r"```\n(.*?)```", (GUIDES / guide).read_text(), flags=re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


@pytest.fixture
def home(tmp_path: Path) -> Shell:
    """Return a home with a command kctl."""
    shell = Shell(tmp_path)
    script = tmp_path / "bin" / "kctl"
    script.parent.mkdir()
    forked = [ForkServer.of_this_process().path, [sys.executable, "-m", "kctl"], [*NOT_FORKED]]
    program = shlex.join([sys.executable, "-I", "-S", str(FORKED_KCTL), json.dumps(forked)])
    script.write_text(f'#!/bin/sh\nexec {program} "$@"\n')
    script.chmod(0o755)
    root = str(Path(__file__).parents[2])
    shell.environment |= {
        "PATH": f"{script.parent}:{os.environ['PATH']}",
        "PYTHONPATH": root,
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_DATA_HOME": str(tmp_path / ".local/share"),
    }
    return shell


def impatient(line: str) -> str:
    """Return a command line with any free port, and without what a guide waits for."""
    started = "--port 0 --set group.initial.rebalance.delay.ms=0"
    return line.replace("--port 9492", started).replace("--throttle 2MB", "--throttle 20MB")


def run(home: Shell, line: str) -> subprocess.CompletedProcess[str]:
    """Run a command line of a guide, and say which one does not end."""
    words = ["bash", "-c", impatient(line)]
    # Its children have the streams: the whole session ends with the line.
    with subprocess.Popen(
        words,
        cwd=home.home,
        env=home.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        try:
            stdout, stderr = running.communicate(timeout=_ENDS_S)
        except subprocess.TimeoutExpired:
            print("does not end:", line)
            os.killpg(running.pid, signal.SIGKILL)
            stdout, stderr = running.communicate()
            pytest.fail(f"does not end: {line}\n{stdout}\n{stderr}")
    return subprocess.CompletedProcess(words, running.returncode, stdout, stderr)


def give_up(home: Shell, line: str) -> subprocess.CompletedProcess[str]:
    """Run a move, and interrupt it once the cluster has begun with it."""
    assert THROTTLE in line
    words = shlex.split(line.removeprefix(GIVEN_UP).replace(THROTTLE, SLOW_THROTTLE))
    # A process of its own gets the signal.
    with subprocess.Popen(
        [*KCTL, *words[1:]],
        cwd=home.home,
        env=home.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as moving:
        until_moving(home)
        moving.send_signal(signal.SIGINT)
        stdout, stderr = moving.communicate()
    return subprocess.CompletedProcess(words, moving.returncode, stdout, stderr)


def test_moving_replicas(home: Shell) -> None:
    checks = given_up = 0
    try:
        for line in commands("reassignment.md"):
            if line.startswith(GIVEN_UP):
                given_up += 1
                done, wanted = give_up(home, line), INTERRUPTED
            else:
                done, wanted = run(home, line), 0
            assert wanted == done.returncode, (line, done.stdout, done.stderr)
            if line == "kctl check":
                checks += 1
                # What moves is shown, and is no fault.
                assert (checks == 1) == ("move" in done.stdout)
    finally:
        home.run("cluster", "destroy", "-y")
    assert (1, 2) == (given_up, checks)


def test_sizing_topics(home: Shell) -> None:
    told = {}
    try:
        for line in commands("retention.md"):
            done = run(home, line)
            assert 0 == done.returncode, (line, done.stdout, done.stderr)
            told[line] = done.stderr
    finally:
        home.run("cluster", "destroy", "-y")
    # Of the embedded cluster it is exact: whole segments, and no range.
    assert told["kctl retention plan clicks"].startswith("0 B of 9.8")
    what_goes = told["kctl retention plan clicks --set retention.ms=3d"]
    share = float(what_goes.partition("(")[2].partition(" %) go now")[0])
    # Two of five days are due, less what whole segments of 1 MB keep: up to one a partition.
    assert 40 - 100 * 2 / (9.8 * 1.048576) <= share <= 40
    assert "2 partitions begin later" in told["kctl retention run"]
    # What was told to go has gone.
    exact, ran = told["kctl compact plan users --exact --chart"], told["kctl compact run users"]
    assert ran.startswith(f"{exact.partition(' of ')[0]} went, of 2 replicas")
    what_if = told["kctl compact plan clicks --set cleanup.policy=compact --exact"]
    # How much lies in the open segment of 1 MB depends on where batches ended.
    assert abs(float(what_if.split()[1]) - 7.46) <= 1e6 / (1 << 20)
    planned, cleaned = (
        next(told[line] for line in told if line.startswith(f"kctl compact {verb} --dir"))
        for verb in ("plan", "run")
    )
    freed = planned.splitlines()[1].partition(" of ")[0]
    assert f"{freed} went, of 1 partition" in cleaned


def test_rehearsing_a_partition(home: Shell) -> None:
    told = {}
    try:
        for line in commands("partitions.md"):
            done = run(home, line)
            assert 0 == done.returncode, (line, done.stdout, done.stderr)
            told[line] = done.stdout
    finally:
        home.run("cluster", "destroy", "-y")
    assert "1,2,store | 3" in told["kctl cluster status"]
    assert "200" == told["kctl consume orders -e | wc -l"].strip()


def test_reading_consumer_lag(home: Shell) -> None:
    told = {}
    try:
        for line in commands("consumer-lag.md"):
            done = run(home, line)
            assert 0 == done.returncode, (line, done.stdout, done.stderr)
            told[line] = done.stdout
    finally:
        home.run("cluster", "destroy", "-y")
    assert "100" == told["kctl consume orders -g billing -e | wc -l"].strip()
    assert 40 == (home.home / "read.txt").read_text().count("\n")


def test_copying_topics(home: Shell) -> None:
    told = {}
    try:
        for line in commands("copying.md"):
            done = run(home, line)
            assert 0 == done.returncode, (line, done.stdout, done.stderr)
            told[line] = done.stdout
    finally:
        for name in ("old", "new"):
            home.run("cluster", "destroy", "--data", str(home.home / name), "-y")
    counts = [int(told[line]) for line in told if line.endswith("--context new | wc -l")]
    assert [5000, 3000] == counts
    sample = next(told[line] for line in told if line.startswith("kctl consume sample-orders"))
    assert {"***"} == {line.split()[1] for line in sample.splitlines()}


def test_watching_a_cluster(home: Shell) -> None:
    told = {}
    try:
        for line in commands("watching.md"):
            done = run(home, line)
            assert 0 == done.returncode, (line, done.stdout, done.stderr)
            told[line] = done.stdout
    finally:
        home.run("cluster", "destroy", "-y")
    assert "<svg" in (home.home / "tuesday.html").read_text()
    assert ["billing"] == [
        row["group"] for row in json.loads((home.home / "frame.json").read_text())["groups"]
    ]
    report = next(text for line, text in told.items() if line.endswith("| head -8"))
    assert report in (GUIDES / "watching.md").read_text().replace(
        "700 of orders-1", "700 of orders-"
    )


def test_securing_a_cluster(home: Shell) -> None:
    told = {}
    try:
        for line in commands("securing.md"):
            done = run(home, line)
            assert 0 == done.returncode, (line, done.stdout, done.stderr)
            told[line] = done.stdout
    finally:
        home.run("cluster", "destroy", "--data", str(home.home / "rehearsal"), "-y")
    consume = next(line for line in told if line.startswith("kctl consume"))
    assert "100" == told[consume].strip()
    check = next(line for line in told if line.startswith("kctl acls check"))
    assert "exit code 4" in told[check]
    assert not (home.home / "rehearsal").exists()


def test_declaring_the_state_of_a_cluster(home: Shell) -> None:
    guide = (GUIDES / "declared-state.md").read_text()
    wanted = guide.partition("```\nversion")[2].partition("```")[0]
    (home.home / "wanted.yaml").write_text(f"version{wanted}")
    told = {}
    try:
        for line in commands("declared-state.md"):
            done = run(home, line)
            assert 0 == done.returncode, (line, done.stdout, done.stderr)
            assert "secret" not in done.stdout + done.stderr
            told[line] = done.stdout
    finally:
        home.run("cluster", "destroy", "-y")
    topics = told["kctl export topics"]
    assert "old-orders" not in topics
    assert "partitions: 4" in topics


def test_ending_a_hanging_transaction(home: Shell) -> None:
    told = {}
    try:
        for line in commands("hanging-transactions.md"):
            done = run(home, line)
            assert 0 == done.returncode, (line, done.stdout, done.stderr)
            told.setdefault(line, []).append(done.stdout)
    finally:
        home.run("cluster", "destroy", "-y")
    committed = told["kctl consume payments:0 -e --read-committed | wc -l"]
    assert ["101", "201"] == [count.strip() for count in committed]
    assert "CompleteCommit" in told["kctl transactions describe forged"][0]
    assert 101 == (home.home / "read.txt").read_text().count("\n")
    assert " 101 " in told["kctl groups lag billing"][0]
    assert "hanging-transaction" in told["kctl check || test $? = 4"][0]
    explained = told["kctl explain partition payments:0 | tail -2"][0].split()
    assert ["hangs", "billing"] == explained[-2:]


def run_guide(home: Shell, guide: str) -> dict[str, str]:
    """Run all commands of a guide; return what each printed on stdout."""
    printed = {}
    try:
        for line in commands(guide):
            done = run(home, line)
            assert 0 == done.returncode, (line, done.stdout, done.stderr)
            printed[line] = done.stdout
    finally:
        home.run("cluster", "destroy", "-y")
    return printed


def test_bringing_a_deleted_topic_back(home: Shell) -> None:
    printed = run_guide(home, "deleted-topic.md")
    ends = printed["kctl offsets get payments"].splitlines()[1:]
    assert 3000 == sum(int(line.split()[3]) for line in ends)
    lag = [line.split() for line in printed["kctl groups lag ledger"].splitlines()[1:]]
    assert 2000 == sum(int(row[5]) for row in lag), lag


def test_losing_a_broker(home: Shell) -> None:
    printed = run_guide(home, "lost-broker.md")
    assert "at-min-isr" in printed["kctl check || test $? = 4"]
    assert "2100" == printed["kctl consume orders -e | wc -l"].strip()
    assert "4" in printed["kctl brokers replace 3 4 --dry-run || test $? = 5"]


def test_mending_under_replicated_partitions(home: Shell) -> None:
    printed = run_guide(home, "under-replicated.md")
    assert "under-replicated" in printed["kctl check || test $? = 4"]
    assert "500" == printed["kctl consume orders -e | wc -l"].strip()
    (topic,) = json.loads((home.home / "partitions.json").read_text())
    assert [[1, 2], [2, 1], [1, 2]] == [row["isr"] for row in topic["partitions"]]


def test_mending_corrupt_segments(home: Shell) -> None:
    printed = run_guide(home, "corrupt-segments.md")
    lines = (home.home / "problems.ndjson").read_text().splitlines()
    problems = [json.loads(line) for line in lines]
    assert [("audit-0", "batch-crc"), ("orders-0", "batch-crc")] == sorted(
        (problem["partition"], problem["code"]) for problem in problems
    )
    # The healthy replica gave all back; of the only one the batch behind the damage is gone.
    assert "2000" == printed["kctl consume orders -e | wc -l"].strip()
    assert "1000" == printed["kctl consume audit -e | wc -l"].strip()
    assert (home.home / "orders-0.damaged").is_dir()


def test_freeing_a_disk(home: Shell) -> None:
    printed = run_guide(home, "full-disk.md")
    assert "clicks" in printed["kctl topics list --size"]


def test_the_tour(home: Shell) -> None:
    printed = run_guide(home, "../tour.md")
    assert "1000" == printed["kctl consume clicks -e | wc -l"].strip()


def run_here(home: Shell, line: str) -> str:
    """Run a line of nothing but kctl in this process, which imports DuckDB once; return stdout.

    It may end with the file that stdout is for.
    """
    assert not set("$`\\|&;<") & set(line), "only a shell knows what that means"
    words = shlex.split(line)
    target = words[words.index(">") :][1:] if ">" in words else []
    code, printed, said = run_kctl(words[1 : len(words) - 2 * len(target)], home.home)
    assert ("kctl", 0) == (words[0], code), (line, printed, said)
    for name in target:
        (home.home / name).write_bytes(printed)
    return "" if target else printed.decode()


@pytest.mark.spark
def test_looking_into_incidents(home: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    (home.home / "tests").symlink_to(Path(__file__).parents[1])
    for name in os.environ.keys() - home.environment.keys():
        if name.startswith(("KCTL_", "XDG_")):
            monkeypatch.delenv(name)
    for name, value in home.environment.items():
        monkeypatch.setenv(name, value)
    told = {}
    for line in commands("forensics.md"):
        if line.startswith("kctl spark-export"):
            # What needs Spark leaves no Java here.
            done = run(home, line)
            assert 0 == done.returncode, (line, done.stdout, done.stderr)
            told[line] = done.stdout
        else:
            told[line] = run_here(home, line)
    guide = (GUIDES / "forensics.md").read_text()
    for line, stdout in told.items():
        after = guide.partition(f"$ {line}\n")[2].partition("```")[0]
        shown = f"\n{after}".partition("\n$ ")[0]
        printed = [text.split() for text in stdout.splitlines()]
        # The guide leaves out rows, and shows none that is not there.
        assert all(text.split() in printed for text in shown.split("\n") if text), line
    assert "big" not in (home.home / "offsets.csv").read_text()
    assert 5 <= (home.home / "offsets.csv").read_text().count("\n")
    assert "996000" in (home.home / "hot.json").read_text()
    assert "<h2" in (home.home / "incident.html").read_text()
    assert (home.home / "evidence" / "_kctl_manifest.json").exists()
