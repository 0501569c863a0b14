"""kctl against a cluster: the embedded one, or `make compat KCTL_TEST_BOOTSTRAP=host:port`."""

from __future__ import annotations

import io
import json
import os
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.embedded import EmbeddedCluster
from tests.golden_dump import run_kctl

CONFIG = os.environ.get("KCTL_TEST_COMMAND_CONFIG", "")
#: Where the cluster is, once the module's fixture has found or started one.
_ADDRESS: list[str] = []

pytestmark = pytest.mark.xdist_group("compat")


@pytest.fixture(autouse=True, scope="module")
def _cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    named = os.environ.get("KCTL_TEST_BOOTSTRAP", "")
    if named:
        _ADDRESS[:] = [named]
        yield
        return
    embedded = EmbeddedCluster(tmp_path_factory.mktemp("compat") / "cluster")
    embedded.start()
    _ADDRESS[:] = [embedded.address]
    yield
    embedded.destroy()


def kctl(*args: str, stdin: bytes = b"") -> str:
    where = ["-b", _ADDRESS[0]] + (["--command-config", CONFIG] if CONFIG else [])
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(stdin))
    try:
        code, out, err = run_kctl([*args, *where], Path.cwd())
    finally:
        sys.stdin = before
    assert (0, args) == (code, args), err
    return out.decode()


def rows(*args: str, stdin: bytes = b"") -> list[dict[str, Any]]:
    return list(json.loads(kctl(*args, "-o", "json", stdin=stdin)))


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> Iterator[str]:
    name = f"kctl-compat-{os.getpid()}-{zlib.crc32(request.node.name.encode()) % 100_000}"
    kctl("topics", "create", name, "-p", "3", "-r", "1")
    yield name
    kctl("topics", "delete", name, "-y")


def test_a_topic_lives_and_grows(topic: str) -> None:
    kctl("topics", "alter", topic, "-p", "5", "-y")
    (found,) = rows("topics", "describe", topic)
    assert 5 == len(found["partitions"])
    assert topic in kctl("topics", "list", "-o", "name").split()


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_goes_there_and_back(topic: str, codec: str) -> None:
    sent = [b"%d:%d" % (n, n * n) for n in range(5_000)]
    kctl("produce", topic, "-k", ":", "-z", codec, stdin=b"\n".join(sent))
    got = kctl("consume", topic, "-e", "-f", "%k:%s\\n").splitlines()
    assert sorted(line.decode() for line in sent) == sorted(got)


@pytest.mark.parametrize("acks", ["all", "1"])
def test_bytes_survive_ndjson(topic: str, acks: str) -> None:
    line = {"key": "/wA=", "key_encoding": "base64", "value": None, "headers": [{"key": "h"}]}
    kctl("produce", topic, "--acks", acks, "--input", "ndjson", stdin=json.dumps(line).encode())
    (found,) = rows("consume", topic, "-e")
    assert ("/wA=", "base64", None) == (found["key"], found["key_encoding"], found["value"])
    assert [{"key": "h", "value": None, "encoding": None}] == found["headers"]


def test_offsets_and_deletion(topic: str) -> None:
    kctl("produce", topic, "-p", "0", stdin=b"a\nb\nc\n")
    assert [3, 0, 0] == [row["distance"] for row in rows("offsets", "get", topic)]
    kctl("records", "delete", f"{topic}:0", "--before", "2", "-y")
    assert "c\n" == kctl("consume", topic, "-e")
    assert [2] == [row["offset"] for row in rows("offsets", "get", f"{topic}:0", "--at", "start")]


def test_settings_of_topics(topic: str) -> None:
    kctl("configs", "set", "--topic", topic, "retention.ms=5000", "cleanup.policy+=compact")
    found = {row["key"]: row["value"] for row in rows("topics", "configs", topic)}
    assert "5000" == found["retention.ms"]
    assert {"delete", "compact"} == set(found["cleanup.policy"].split(","))
    kctl("configs", "unset", "--topic", topic, "retention.ms", "cleanup.policy")
    left = rows("topics", "configs", topic)
    assert [] == [row["key"] for row in left if row["source"] == "dynamic-topic"]


def test_brokers_describe_themselves(topic: str) -> None:
    ids = [str(row["broker_id"]) for row in rows("brokers", "list")]
    assert ids == [str(row["broker_id"]) for row in rows("brokers", "describe")]
    replicas = rows("brokers", "log-dirs", "--topic", topic, "--replicas")
    assert {0, 1, 2} == {row["partition"] for row in replicas}
    found = {row["api"]: row["usable"] for row in rows("brokers", "api-versions", ids[0])}
    assert found["Metadata"]


def test_settings_say_what_they_do(topic: str) -> None:
    found = rows("topics", "configs", topic, "--all", "--documentation")
    assert [] == [row["key"] for row in found if not row["documentation"]]
    text = kctl("configs", "describe", "--topic", topic, "retention.ms", "--doc")
    assert text.splitlines()[2].startswith("    ")
    assert "retention.ms\n" == kctl(
        "configs", "describe", "--topic", topic, "retention.ms", "-oname"
    )
