"""A cluster of Spark whose machines have no kctl: what it answers, and what failures change.

Slow, so by hand: make spark-cluster
"""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.analysis.damage import ReadDamage
from engine.analysis.local_query import run_local_query
from engine.analysis.spark_query import run_query
from engine.analysis.spark_session import start_session
from engine.analysis.spark_target import SparkTarget
from engine.analysis.splits import Selection, plan_splits
from engine.analysis.statements import QueryFailed
from engine.host.real import RealFiles
from tests.golden_cases import case_dir
from tests.spark.clusters import Cluster, Daemon, Run, awaited, spark_cluster
from tests.unit.analysis.schema_logs import PROTO, write_keyed_log
from tests.unit.log.logs import batch, name_of

pytestmark = [
    pytest.mark.spark,
    pytest.mark.xdist_group("spark-cluster"),
    pytest.mark.skipif(
        "KCTL_TEST_SPARK_CLUSTER" not in os.environ, reason="slow; make spark-cluster runs it"
    ),
]

_BATCH_RECORDS = 1000
#: Records of each partition; the last one of the plan is by far the longest task, so that the other
#: worker has nothing else to do meanwhile.
_COUNTS = (*(10_000 for _ in range(9)), 60_000, 10_000, 10_000)
_QUERY = "select topic, partition, count(*) n, sum(offset) s from records group by 1, 2 order by 2"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    content = batch(0, _BATCH_RECORDS)[8:]
    for partition, count in enumerate(_COUNTS):
        log = folder / f"t-{partition}" / name_of(0)
        log.parent.mkdir()
        # The checksum does not cover the base offset.
        offsets = range(0, count, _BATCH_RECORDS)
        log.write_bytes(b"".join(offset.to_bytes(8) + content for offset in offsets))
    return folder


def _export(cluster: Cluster, logs: Path, out: Path, *options: str) -> Run:
    return Run("spark-export", logs, "--out", out, "--format", "json",
               "--columns", "partition,offset,key", *cluster.options, *options)  # fmt: skip


def _check(out: Path) -> None:
    """Each record is there once, in files that the manifest lists."""
    listed = {
        entry["name"] for entry in json.loads((out / "_kctl_manifest.json").read_text())["files"]
    }
    assert listed == {path.name for path in out.glob("part-*")}
    seen: Counter[int] = Counter()
    places = set()
    for name in listed:
        for line in gzip.decompress((out / name).read_bytes()).splitlines():
            row = json.loads(line)
            seen[row["partition"]] += 1
            places.add((row["partition"], row["offset"]))
    assert dict(enumerate(_COUNTS)) == seen
    assert sum(_COUNTS) == len(places)
    assert [out.name] == [path.name for path in out.parent.iterdir()]


def _first_file(out: Path) -> Path | None:
    """Return the first file that a running export has completed or begun."""
    return next(out.parent.glob(f".{out.name}.kctl-*/part-*"), None)


def _events(folder: Path) -> list[dict[str, object]]:
    paths = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")]
    return [json.loads(line) for path in paths for line in path.read_text().splitlines() if line]


def _event_options(folder: Path) -> list[str]:
    folder.mkdir()
    return ["--conf=spark.eventLog.enabled=true", f"--conf=spark.eventLog.dir=file://{folder}",
            "--conf=spark.eventLog.compress=false"]  # fmt: skip


@pytest.mark.parametrize(
    "words", [("spark-sql", _QUERY), ("spark-report", "topics"), ("spark-report", "keys")]
)
def test_queries_and_reports_are_those_of_the_local_engine(
    words: tuple[str, str], cluster: Cluster, logs: Path
) -> None:
    local = Run(*words, logs, "--engine", "local", "-o", "json").result()
    assert local == Run(*words, logs, *cluster.options, "-o", "json").result()


def test_a_condition_brings_its_engine_along(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "logs" / "t-0").mkdir(parents=True)
    (tmp_path / "logs" / "t-0" / name_of(0)).write_bytes(batch(0, 50))
    run = _export(
        cluster, tmp_path / "logs", tmp_path / "out", "--where", "offset >= 40", "-o", "json"
    )
    assert 10 == json.loads(run.result())[0]["record_count"]


def test_protobuf_is_decoded_where_its_compiler_is_not(cluster: Cluster, tmp_path: Path) -> None:
    logs, schemas = tmp_path / "logs", tmp_path / "schemas"
    logs.mkdir()
    schemas.mkdir()
    write_keyed_log(logs)
    (schemas / "3.proto").write_text(PROTO)
    words = ("select decoded_key.total, decoded_value from records where offset = 2", logs,
             "--schemas", schemas, "--keys", "schema", "-o", "json")  # fmt: skip
    local = Run("spark-sql", *words, "--engine", "local").result()
    assert [{"total": 1 << 40, "decoded_value": None}] == json.loads(local)
    assert local == Run("spark-sql", *words, *cluster.options).result()


def test_second_attempts_double_no_rows(cluster: Cluster, logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out" / "export"
    speculation = {"": "true", ".interval": "50ms", ".quantile": "0.1", ".multiplier": "1.1",
                   ".minTaskRuntime": "10ms"}  # fmt: skip
    settings = [f"--conf=spark.speculation{name}={value}" for name, value in speculation.items()]
    events = tmp_path / "events"
    _export(cluster, logs, out, *settings, *_event_options(events)).result()
    started = [e["Task Info"] for e in _events(events) if e["Event"] == "SparkListenerTaskStart"]
    assert any(task["Speculative"] for task in started)  # type: ignore[index]
    _check(out)


def test_a_worker_that_is_killed_changes_nothing(
    cluster: Cluster, logs: Path, tmp_path: Path
) -> None:
    out, events = tmp_path / "out" / "export", tmp_path / "events"
    run = _export(cluster, logs, out, *_event_options(events))
    awaited(lambda: _first_file(out))
    cluster.workers[-1].kill()
    assert run.is_running
    run.result()
    cluster.start_worker()
    assert any(event["Event"] == "SparkListenerExecutorRemoved" for event in _events(events))
    _check(out)


def test_a_driver_that_is_killed_leaves_the_earlier_export(
    cluster: Cluster, logs: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out" / "export"
    _export(cluster, logs, out).result()
    before = {path.name: path.read_bytes() for path in out.glob("_kctl*")}
    run = _export(cluster, logs, out, "--include-control")
    awaited(lambda: _first_file(out))
    run.kill()
    assert before == {path.name: path.read_bytes() for path in out.glob("_kctl*")}
    _export(cluster, logs, out).result()
    _check(out)


@pytest.fixture(scope="module")
def connect(cluster: Cluster) -> Iterator[str]:
    """Return the address of a Connect server whose tasks run on the cluster."""
    settings = {
        "spark.master": cluster.master,
        "spark.driver.host": "127.0.0.1",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.ui.enabled": "false",
    }
    server = Daemon(
        cluster.folder / "connect.log",
        ["org.apache.spark.deploy.SparkSubmit",
         "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
         *(f"--conf={name}={value}" for name, value in settings.items()), "spark-internal"],
        {**cluster.environment, "PYSPARK_PYTHON": str(cluster.python)},
    )  # fmt: skip
    try:
        yield f"sc://127.0.0.1:{server.awaited(r'server started at: [^ ]*:([1-9][0-9]*)')}"
    finally:
        server.kill()


def test_a_connect_server_answers_and_exports(connect: str, logs: Path, tmp_path: Path) -> None:
    local = Run("spark-sql", _QUERY, logs, "--engine", "local", "-o", "json").result()
    assert local == Run("spark-sql", _QUERY, logs, "--remote", connect, "-o", "json").result()
    out = tmp_path / "out" / "export"
    Run("spark-export", logs, "--out", out, "--format", "json", "--where", "offset >= 0",
        "--columns", "partition,offset,key", "--remote", connect).result()  # fmt: skip
    _check(out)


def test_a_connect_server_reads_only_what_conditions_let_through(
    connect: str, tmp_path: Path
) -> None:
    for name in ("t-0", "t-1", "u-1"):
        (tmp_path / name).mkdir()
        for base in (0, 5, 10):
            (tmp_path / name / name_of(base)).write_bytes(batch(base, 5))
    splits = plan_splits(RealFiles(), [str(tmp_path)], Selection())
    for path in tmp_path.glob("*/*.log"):
        if path.parent.name != "t-1" or path.name != name_of(5):
            path.unlink()
    session = start_session(SparkTarget(remote=connect))
    query = "select offset from records where topic = 't' and partition in (1) and offset {}"
    ask = partial(run_query, session, splits=splits, control=False, max_rows=0)
    rows = ask(query.format("between 6 and 8")).rows
    assert [6, 7, 8] == sorted(row["offset"] for row in rows)
    with pytest.raises(QueryFailed):
        ask(query.format("between 3 and 8"))
    _check_damage(session, str(case_dir("corrupt") / "v2"))
    session.stop()


def _check_damage(session: Any, home: str) -> None:
    """Check that a strict query finds on a Connect server what it finds here."""
    splits = plan_splits(RealFiles(), [home], Selection())
    damage, local = ReadDamage(is_strict=True), ReadDamage()
    query = "select count(value) from records"
    run_query(session, query, splits, control=False, max_rows=0, damage=damage)
    run_local_query(query, splits, control=False, max_rows=0, damage=local)
    assert [] != damage.problems(RealFiles())
    assert local.problems(RealFiles()) == damage.problems(RealFiles())
