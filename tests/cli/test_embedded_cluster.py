"""`kctl cluster` and `kctl broker` as processes: started, asked, killed, stopped, removed."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from tests.cli.shell import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    yield shell
    shell.run("cluster", "stop")


def test_a_cluster_is_started_asked_and_stopped(shell: Shell) -> None:
    started = json.loads(shell.ok("cluster", "start", "--port", "0", "-o", "json"))
    assert started["state"] == "running"
    told = shell.status()
    assert [True] == [broker.pop("is_controller") for broker in told["brokers"]]
    assert [None] == [broker.pop("is_controller") for broker in started["brokers"]]
    assert {**told, **started} == told
    assert len(started["pids"]) == 1
    brokers = json.loads(shell.ok("brokers", "list", "-o", "json"))
    assert f"{brokers[0]['host']}:{brokers[0]['port']}" == started["bootstrap_servers"]
    assert "ready" in shell.ok("cluster", "logs", "-n", "1")
    shell.ok("cluster", "stop")
    stopped = shell.status()
    assert (stopped["state"], stopped["bootstrap_servers"], stopped["pids"]) == (
        "stopped",
        None,
        [],
    )
    assert shell.run("brokers", "list").returncode == 2


def test_the_metadata_store_is_found_where_it_was(shell: Shell) -> None:
    shell.ok("cluster", "start", "--port", "0")
    before = shell.status()["zookeeper"]
    shell.ok("cluster", "stop")
    shell.ok("cluster", "start")
    assert before == shell.status()["zookeeper"]
    shell.ok("cluster", "stop")
    host, _, port = before.rpartition(":")
    with socket.create_server((host, int(port))):
        shell.ok("cluster", "start")
        assert before != shell.status()["zookeeper"]
        assert "cannot listen" in shell.ok("cluster", "logs")


def test_topics_and_records_outlive_a_kill(shell: Shell) -> None:
    shell.ok("cluster", "start", "--port", "0")
    shell.ok("topics", "create", "clicks", "--partitions", "2")
    shell.ok("produce", "clicks", stdin="one\ntwo\n")
    os.kill(shell.status()["pids"][0], signal.SIGKILL)
    while shell.status()["state"] == "running":
        pass
    assert shell.status()["state"] == "crashed"
    shell.ok("cluster", "start")
    consumed = shell.ok("consume", "clicks", "--from", "beginning", "--exit")
    assert sorted(consumed.splitlines()) == ["one", "two"]


def test_a_producer_that_is_interrupted_says_what_was_stored(shell: Shell) -> None:
    shell.ok("cluster", "start", "--port", "0")
    shell.ok("topics", "create", "clicks")
    with shell.popen("produce", "clicks", "-o", "ndjson") as producer:
        assert producer.stdin is not None and producer.stdout is not None
        producer.stdin.write("one\ntwo\n")
        producer.stdin.flush()
        while shell.ok("consume", "clicks", "-e").splitlines() != ["one", "two"]:
            pass
        producer.send_signal(signal.SIGINT)
        _, said = producer.communicate()
    assert (130, "2 records\n") == (producer.returncode, said)


def test_of_an_interrupted_stream_all_lines_are_stored_that_were_read(shell: Shell) -> None:
    shell.ok("cluster", "start", "--port", "0")
    shell.ok("topics", "create", "clicks")
    reader, writer = os.pipe()
    feeder = _Feeder(writer)
    with shell.popen("produce", "clicks", "-o", "ndjson", stdin=reader) as producer:
        feeder.start()
        assert producer.stdout is not None
        producer.stdout.readline()
        producer.send_signal(signal.SIGINT)
        _, said = producer.communicate()
    feeder.is_over.set()
    with open(reader, "rb") as rest:
        left_bytes = len(rest.read())
    feeder.join()
    (row,) = json.loads(shell.ok("offsets", "get", "clicks", "-o", "json"))
    stored = row["end_offset"]
    assert (130, f"{stored} records\n") == (producer.returncode, said)
    assert (feeder.fed_bytes - left_bytes) // len(feeder.line) == stored


def test_a_producer_that_loses_the_cluster_says_what_was_stored(shell: Shell) -> None:
    shell.ok("cluster", "start", "--port", "0")
    shell.ok("topics", "create", "clicks")
    reader, writer = os.pipe()
    feeder = _Feeder(writer)
    words = ("produce", "clicks", "-o", "ndjson", "--timeout", "1")
    with shell.popen(*words, stdin=reader) as producer:
        feeder.start()
        assert producer.stdout is not None
        first = producer.stdout.readline()
        os.kill(shell.status()["pids"][0], signal.SIGKILL)
        rows, said = producer.communicate()
    feeder.is_over.set()
    with open(reader, "rb") as rest:
        rest.read()
    feeder.join()
    told = [json.loads(row)["record_count"] for row in (first + rows).splitlines()]
    stored = sum(told)
    lines = said.splitlines()
    assert (3, f"{stored} records") == (producer.returncode, lines[-1])
    assert ["warning", "error", "hint"] == [line.partition(":")[0] for line in lines[:3]]
    assert f"stored: every line from 1 to {stored}" in lines
    assert f"hint: go on with --from-line {stored + 1}" in lines


def test_records_go_through_restarts_of_the_broker_once_and_in_order(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    shell.ok("cluster", "start", "--port", str(port))
    shell.ok("topics", "create", "clicks", "-p", "2")
    words = ("produce", "clicks", "-k", ":", "--timeout", "60", "-o", "ndjson")
    with shell.popen(*words) as producer:
        assert producer.stdin is not None and producer.stdout is not None
        for number in range(20_000):
            producer.stdin.write(f"{number % 7}:{number}\n")
            if number == 0:
                producer.stdin.flush()
                producer.stdout.readline()
            if number == 5_000:
                os.kill(shell.status()["pids"][0], signal.SIGKILL)
            if number in (6_000, 13_000):
                shell.ok("cluster", "start")
            if number == 12_000:
                shell.ok("cluster", "stop")
        _, said = producer.communicate()
    assert (0, "20000 records") == (producer.returncode, said.splitlines()[-1]), said
    for partition in (0, 1):
        values = [int(v) for v in shell.ok("consume", f"clicks:{partition}", "-e").split()]
        assert values == sorted(values)
    assert [str(n) for n in range(20_000)] == sorted(
        shell.ok("consume", "clicks", "-e").split(), key=int
    )


@pytest.mark.parametrize("config", ["max.message.bytes=20000", "segment.bytes=100000"])
def test_a_large_input_fits_a_topic_of_small_batches(shell: Shell, config: str) -> None:
    shell.ok("cluster", "start", "--port", "0")
    shell.ok("topics", "create", "small", "-c", config)
    lines = "".join(f"{number}\n" for number in range(1, 50_001))
    for codec in ("none", "zstd"):
        shell.ok("produce", "small", "-z", codec, stdin=lines)
    assert lines * 2 == shell.ok("consume", "small", "-e")


def test_a_record_that_is_too_large_is_named_and_the_rest_is_stored(shell: Shell) -> None:
    shell.ok("cluster", "start", "--port", "0")
    shell.ok("topics", "create", "small", "-p", "3", "-c", "max.message.bytes=2000")
    lines = [str(number) for number in range(1, 1001)]
    lines[499] = "x" * 3_000
    done = shell.run("produce", "small", stdin="\n".join(lines))
    told = done.stderr.splitlines()
    assert (1, "999 records") == (done.returncode, told[-1])
    assert told[0].startswith("error: line 500 of 3,0")
    assert "MESSAGE_TOO_LARGE" in told[0] and "max.message.bytes" in told[1]
    assert told[2].startswith("limits of small: max.message.bytes=2000, segment.bytes=")
    assert told[3:5] == [
        "stored: every line from 1 to 1000 but 500",
        "hint: continue after them with --from-line 1001",
    ]
    del lines[499]
    assert sorted(lines) == sorted(shell.ok("consume", "small", "-e").split())


def test_a_run_goes_on_at_the_line_that_stopped_it(shell: Shell) -> None:
    shell.ok("cluster", "start", "--port", "0")
    shell.ok("topics", "create", "t")
    lines = ['{"value": "a"}', '{"val": "b"}', '{"value": "c"}']
    done = shell.run("produce", "t", "--input", "ndjson", stdin="\n".join(lines))
    assert "stored: every line from 1 to 1\nhint: go on with --from-line 2\n" in done.stderr
    lines[1] = '{"value": "b"}'
    shell.ok("produce", "t", "--input", "ndjson", "--from-line", "2", stdin="\n".join(lines))
    assert "a\nb\nc\n" == shell.ok("consume", "t", "-e")


def test_each_file_is_one_record(shell: Shell, tmp_path: Path) -> None:
    shell.ok("cluster", "start", "--port", "0")
    shell.ok("topics", "create", "t", "-c", "max.message.bytes=2000")
    paths = [tmp_path / name for name in ("one", "two", "large")]
    for path, content in zip(paths, ("a\nb\n", "", "x" * 3_000), strict=True):
        path.write_text(content)
    words = [word for path in paths for word in ("--file", str(path))]
    done = shell.run("produce", "t", "--key", "k", *words)
    assert (1, "2 records") == (done.returncode, done.stderr.splitlines()[-1])
    assert f"error: file {paths[2]} of 3,0" in done.stderr
    assert "k=a\nb\n|k=|" == shell.ok("consume", "t", "-e", "-f", "%k=%s|")
    missing = shell.run("produce", "t", "--file", str(tmp_path / "none"))
    assert (1, True) == (missing.returncode, "none" in missing.stderr)


def test_client_settings_are_honoured_or_refused(shell: Shell) -> None:
    shell.ok("cluster", "start", "--port", "0")
    shell.ok("topics", "create", "t")
    words = ("-X", "acks=1", "-X", "batch.size=100", "-X", "compression.type=lz4")
    rows = shell.ok("produce", "t", "-o", "ndjson", *words, stdin="x\n" * 100)
    assert len(rows.splitlines()) > 2
    done = shell.run("produce", "t", "-X", "nope=1", stdin="x\n")
    assert (2, True) == (done.returncode, "known are acks, batch.size," in done.stderr)


class _Feeder(Thread):
    """Writes lines into a pipe, which is always full, until that is over."""

    line = b"a line of some length\n"

    def __init__(self, writer: int) -> None:
        super().__init__()
        self._writer = writer
        self.fed_bytes = 0
        self.is_over = Event()

    def run(self) -> None:
        with open(self._writer, "wb", buffering=0) as stream:
            while not self.is_over.is_set():
                self.fed_bytes += stream.write(self.line * 100)


def test_clusters_live_side_by_side(shell: Shell, tmp_path: Path) -> None:
    other = str(tmp_path / "other")
    shell.ok("cluster", "start", "--port", "0")
    shell.ok("cluster", "start", "--port", "0", "--data", other)
    servers = {
        shell.status()["bootstrap_servers"],
        shell.status("--data", other)["bootstrap_servers"],
    }
    assert len(servers) == 2
    shell.ok("cluster", "destroy", "--data", other, "-y")
    assert not Path(other).exists()
    assert shell.status()["state"] == "running"


def test_a_second_start_changes_nothing(shell: Shell) -> None:
    shell.ok("cluster", "start", "--port", "0")
    before = shell.status()
    again = shell.run("cluster", "start")
    assert again.returncode == 0
    assert "running already" in again.stderr
    assert shell.status() == before


def test_what_is_wrong_is_said_before_anything_is_made(shell: Shell) -> None:
    bad = shell.run("cluster", "start", "--set", "num.partitions=few")
    assert bad.returncode == 1
    assert "num.partitions" in bad.stderr
    assert shell.run("cluster", "start", "--set", "num.partitions").returncode == 2
    shared = shell.run("cluster", "start", "--brokers", "3", "--set", "log.dirs=/elsewhere")
    assert shared.returncode == 1
    assert "log.dirs" in shared.stderr
    assert shell.status()["state"] == "absent"
    assert shell.run("cluster", "stop").returncode == 1
    assert shell.run("cluster", "destroy", "-y").returncode == 1


@pytest.mark.parametrize(
    ("setting", "code", "said"),
    [
        ("num.partiions=3", 0, "is passed over; did you mean num.partitions?"),
        ("log.retention.ms=7d", 1, "hint: log.retention.ms is in milliseconds: 7d is 604800000"),
    ],
)
def test_a_setting_that_may_be_mistyped_is_asked_about(
    shell: Shell, setting: str, code: int, said: str
) -> None:
    done = shell.run("cluster", "start", "--port", "0", "--set", setting)
    assert (code, True) == (done.returncode, said in done.stderr), done.stderr


def test_a_cluster_in_the_foreground_says_where_it_is_until_a_signal(shell: Shell) -> None:
    with shell.popen("cluster", "start", "--foreground", "--port", "0", "-o", "ndjson") as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        assert ("running", [process.pid]) == (told["state"], told["pids"])
        shell.ok("brokers", "list", "-b", told["bootstrap_servers"])
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert 0 == process.returncode
    assert "stopped" == shell.status()["state"]


def test_a_disk_that_is_gone_is_reported_wherever_brokers_are_shown(
    shell: Shell, tmp_path: Path
) -> None:
    disks = [str(tmp_path / "disk-1"), str(tmp_path / "disk-2")]
    settings = [f"log.dirs={','.join(disks)}", "replica.high.watermark.checkpoint.interval.ms=100"]
    shell.ok("cluster", "start", "--port", "0", "--set", settings[0], "--set", settings[1])
    shell.ok("topics", "create", "t", "-p", "4")
    os.rename(disks[0], f"{disks[0]}-gone")
    while shell.run("brokers", "log-dirs", "-o", "json").returncode == 0:
        pass
    for words in (["log-dirs"], ["log-dirs", "--replicas"], ["describe"]):
        done = shell.run("brokers", *words)
        assert (1, True) == (done.returncode, f"{disks[0]}: KAFKA_STORAGE" in done.stderr), words
        assert disks[1] not in done.stderr
    while all(row["leader"] for row in _partitions(shell, "t")):
        pass
    assert {None, 1} == {row["leader"] for row in _partitions(shell, "t")}


def _partitions(shell: Shell, topic: str) -> list[dict[str, Any]]:
    (described,) = json.loads(shell.ok("topics", "describe", topic, "-o", "json"))
    partitions: list[dict[str, Any]] = described["partitions"]
    return partitions


def test_a_port_that_is_taken_is_named(shell: Shell, tmp_path: Path) -> None:
    shell.ok("cluster", "start", "--port", "0")
    port = shell.status()["bootstrap_servers"].rpartition(":")[2]
    other = str(tmp_path / "other")
    taken = shell.run("cluster", "start", "--data", other, "--port", port)
    assert taken.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in taken.stderr
    assert shell.status("--data", other)["state"] == "stopped"


def test_a_broker_runs_from_a_properties_file_until_sigterm(shell: Shell, tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text(
        "broker.id=7\nlisteners=PLAINTEXT://127.0.0.1:0\n"
        f"log.dirs={tmp_path / 'logs'}\nno.such.key=1\n"
    )
    with shell.popen("broker", "run", "--config", str(config)) as broker:
        assert broker.stderr is not None
        lines = []
        for line in broker.stderr:
            lines.append(line)
            if "ready: " in line:
                break
        port = lines[-1].split("on port ")[1].split()[0]
        listed = json.loads(shell.ok("brokers", "list", "-b", f"127.0.0.1:{port}", "-o", "json"))
        broker.send_signal(signal.SIGTERM)
        broker.communicate()
    assert [row["broker_id"] for row in listed] == [7]
    assert any("no.such.key" in line for line in lines)
    assert broker.returncode == 0
    assert (tmp_path / "logs" / ".kafka_cleanshutdown").exists()


def test_a_zookeeper_that_is_not_there_is_said_in_words(shell: Shell, tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text(
        "broker.id=7\nzookeeper.connect=127.0.0.1:1\nzookeeper.connection.timeout.ms=300\n"
        f"log.dirs={tmp_path / 'logs'}\n"
    )
    refused = shell.run("broker", "run", "--config", str(config))
    assert refused.returncode == 3
    assert "no server of 127.0.0.1:1 within 300 ms" in refused.stderr
    for more in ("zookeeper.connect=a:b", "zookeeper.set.acl=true"):
        wrong = shell.run("broker", "run", "--config", str(config), "--set", more)
        assert (wrong.returncode, more in wrong.stderr) == (1, True)


def _broker_ids(shell: Shell) -> list[int]:
    rows = json.loads(shell.ok("brokers", "list", "-o", "json"))
    return [row["broker_id"] for row in rows]


def test_a_broker_joins_a_cluster_by_its_zookeeper(shell: Shell, tmp_path: Path) -> None:
    shell.ok("cluster", "start", "--port", "0")
    config = tmp_path / "server.properties"
    config.write_text(
        "broker.id=7\nlisteners=PLAINTEXT://127.0.0.1:0\n"
        f"log.dirs={tmp_path / 'logs'}\nzookeeper.connect={shell.status()['zookeeper']}\n"
    )
    with shell.popen("broker", "run", "--config", str(config)) as broker:
        assert broker.stderr is not None
        for line in broker.stderr:
            if "is up" in line:
                break
        while [
            row["broker_id"] for row in json.loads(shell.ok("brokers", "list", "-o", "json"))
        ] != [1, 7]:
            pass
        broker.send_signal(signal.SIGTERM)
        broker.communicate()
    assert broker.returncode == 0
    assert shell.ok("znode", "ls", "/brokers/ids", "-o", "name") == "/brokers/ids/1\n"


def test_commands_without_an_address_talk_to_the_cluster_that_runs(shell: Shell) -> None:
    shell.ok("cluster", "start", "--port", "0")
    address = shell.status()["bootstrap_servers"]
    chosen = json.loads(shell.ok("context", "show", "-o", "json"))
    assert (chosen["source"], chosen["bootstrap_servers"]) == ("embedded cluster", address)
    shell.ok("context", "set", "other", "-b", "127.0.0.1:1")
    chosen = json.loads(shell.ok("context", "show", "-o", "json"))
    assert chosen["source"] == "current context other"
