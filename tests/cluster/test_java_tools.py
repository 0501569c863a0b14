"""Kafka's own tools against the embedded broker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cluster.embedded import EmbeddedCluster
from tests.cluster.java_tools import NO_TOOLS, JavaTools

_TOOLS = JavaTools.found()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(_TOOLS is None, reason=NO_TOOLS),
]


@pytest.fixture
def tools() -> JavaTools:
    assert _TOOLS is not None
    return _TOOLS


def create(tools: JavaTools, cluster: EmbeddedCluster, topic: str, *more: str) -> None:
    tools.ok("topics", "--bootstrap-server", cluster.address, "--create", "--topic", topic, *more)


def consume(tools: JavaTools, cluster: EmbeddedCluster, topic: str, count: int) -> str:
    return tools.ok(
        "console-consumer",
        *("--bootstrap-server", cluster.address, "--topic", topic, "--partition", "0"),
        *("--offset", "earliest", "--max-messages", str(count), "--timeout-ms", "30000"),
    )


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_the_console_tools_produce_and_consume(
    tools: JavaTools, cluster: EmbeddedCluster, topic: str, codec: str
) -> None:
    lines = "".join(f"line {n}\n" for n in range(200))
    create(tools, cluster, topic)
    tools.ok(
        "console-producer",
        *("--bootstrap-server", cluster.address, "--topic", topic),
        *("--compression-codec", codec, "--producer-property", "enable.idempotence=true"),
        stdin=lines,
    )
    assert consume(tools, cluster, topic, 200) == lines


def test_the_perf_tool_produces(tools: JavaTools, cluster: EmbeddedCluster, topic: str) -> None:
    create(tools, cluster, topic)
    report = tools.ok(
        "producer-perf-test",
        *("--topic", topic, "--num-records", "20000", "--record-size", "500"),
        *("--throughput", "-1", "--producer-props", f"bootstrap.servers={cluster.address}"),
    )
    assert "20000 records sent" in report
    offsets = tools.ok("get-offsets", "--bootstrap-server", cluster.address, "--topic", topic)
    assert offsets == f"{topic}:0:20000\n"


def test_the_verifiable_producer_has_every_record_acknowledged(
    tools: JavaTools, cluster: EmbeddedCluster, topic: str
) -> None:
    create(tools, cluster, topic)
    told = tools.ok(
        "verifiable-producer",
        *("--bootstrap-server", cluster.address, "--topic", topic),
        *("--max-messages", "500", "--acks", "-1"),
    )
    events = [json.loads(line) for line in told.splitlines()]
    sent = [event for event in events if event["name"] == "producer_send_success"]
    assert sorted(int(event["value"]) for event in sent) == list(range(500))
    assert events[-1]["acked"] == 500
    assert len(consume(tools, cluster, topic, 500).splitlines()) == 500


def test_topics_configs_and_directories_are_described_by_their_tools(
    tools: JavaTools, cluster: EmbeddedCluster, topic: str
) -> None:
    create(tools, cluster, topic, "--partitions", "2", "--config", "retention.ms=1000")
    at = ("--bootstrap-server", cluster.address)
    described = tools.ok("topics", *at, "--describe", "--topic", topic)
    head, *partitions = described.splitlines()
    replica_count = min(3, len(cluster.broker_ids))
    assert f"PartitionCount: 2\tReplicationFactor: {replica_count}\t" in head
    assert "retention.ms=1000" in head
    rows = [dict(part.split(": ") for part in line.split("\t")[2:6]) for line in partitions]
    for n, row in enumerate(rows):
        assert row["Partition"] == str(n)
        assert sorted(map(int, row["Replicas"].split(","))) == cluster.broker_ids
        assert sorted(row["Isr"]) == sorted(row["Replicas"])
        assert row["Leader"] == row["Replicas"][0]
    entity = ("--entity-type", "topics", "--entity-name", topic)
    tools.ok("configs", *at, "--alter", *entity, "--add-config", "segment.bytes=12345")
    assert "segment.bytes=12345" in tools.ok("configs", *at, "--describe", *entity)
    dirs = tools.ok("log-dirs", *at, "--describe", "--topic-list", topic)
    brokers = json.loads(dirs.splitlines()[-1])["brokers"]
    assert sorted(broker["broker"] for broker in brokers) == cluster.broker_ids
    for broker in brokers:
        found = broker["logDirs"][0]["partitions"]
        assert sorted(each["partition"] for each in found) == [f"{topic}-0", f"{topic}-1"]
    tools.ok("topics", *at, "--delete", "--topic", topic)
    assert topic not in tools.ok("topics", *at, "--list").splitlines()


def test_records_are_deleted_by_their_tool(
    tools: JavaTools, cluster: EmbeddedCluster, topic: str, tmp_path: Path
) -> None:
    create(tools, cluster, topic)
    at = ("--bootstrap-server", cluster.address)
    tools.ok("console-producer", *at, "--topic", topic, stdin="a\nb\nc\n")
    wanted = tmp_path / "records.json"
    entry = {"topic": topic, "partition": 0, "offset": 2}
    wanted.write_text(json.dumps({"partitions": [entry], "version": 1}))
    told = tools.ok("delete-records", *at, "--offset-json-file", str(wanted))
    assert f"partition: {topic}-0\tlow_watermark: 2" in told
    assert consume(tools, cluster, topic, 1) == "c\n"


def test_the_brokers_apis_are_listed_by_their_tool(
    tools: JavaTools, cluster: EmbeddedCluster
) -> None:
    listed = tools.ok("broker-api-versions", "--bootstrap-server", cluster.address)
    for line in ("Produce(0): 0 to 11 [usable: 11]", "Fetch(1): 0 to 17 [usable: 17]"):
        assert listed.count(line) == len(cluster.broker_ids)


def test_what_our_broker_wrote_is_dumped_without_complaint(
    tools: JavaTools, tmp_path: Path
) -> None:
    own = EmbeddedCluster(tmp_path / "cluster")
    own.start(log_segment_bytes="20000")
    create(tools, own, "dumped")
    lines = "".join(f"record {n} {'x' * 50}\n" for n in range(2000))
    tools.ok(
        "console-producer",
        *("--bootstrap-server", own.address, "--topic", "dumped", "--batch-size", "2000"),
        stdin=lines,
    )
    own.stop()
    folder = tmp_path / "cluster" / "broker-1" / "dumped-0"
    files = sorted(str(path) for path in folder.iterdir() if path.suffix != ".metadata")
    assert sum(path.endswith(".log") for path in files) > 3
    named = [path for path in files if path.endswith((".log", ".index", ".timeindex", ".snapshot"))]
    dumped = tools.run(
        "dump-log", "--print-data-log", "--deep-iteration", "--files", ",".join(named)
    )
    assert dumped.status == 0
    assert dumped.stdout.count(" payload: record ") == 2000
    for complaint in (
        "Mismatches",
        "Non-consecutive",
        "Found timestamp mismatch",
        "isvalid: false",
    ):
        assert complaint not in dumped.stdout
    own.destroy()
