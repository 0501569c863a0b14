"""Directories of several brokers: one replica of each partition is read, others compared."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from engine.analysis.local_query import run_local_query
from engine.analysis.replicas import PartitionTwice
from engine.analysis.reports import report_named
from engine.analysis.splits import ReadingPlan, Selection, plan_reading
from engine.host.real import RealFiles
from tests.golden_cases import case_dir


def _plan(state: str, *brokers: int) -> ReadingPlan:
    folders = [str(case_dir("epochs") / state / f"broker{n}") for n in brokers]
    return plan_reading(RealFiles(), folders, Selection())


def _ask(plan: ReadingPlan, query: str) -> list[dict[str, Any]]:
    splits = [*plan.splits, *plan.spares]
    return run_local_query(query, splits, control=False, max_rows=0).rows


@pytest.mark.parametrize("brokers", [(1, 2, 3), (3, 2, 1), (2, 1)])
def test_the_log_of_the_newest_leader_is_read_and_not_the_longest(brokers: tuple[int, ...]) -> None:
    plan = _plan("divergent", *brokers)
    assert {1} == {split.broker_id for split in plan.splits}
    assert {*brokers} - {1} == {split.broker_id for split in plan.spares}
    (row,) = _ask(plan, "select count(distinct segment) n from records")
    assert 0 < row["n"] <= len(plan.splits)
    (all_batches,) = _ask(plan, "select count(*) n from replicas")
    (read,) = _ask(plan, "select count(*) n from batches")
    assert read["n"] < all_batches["n"]


def test_a_divergence_begins_where_the_broker_truncated() -> None:
    # Broker 2's own log names these offsets when it came back.
    found = [p for p in _plan("divergent", 1, 2, 3).problems if p.code == "diverged"]
    starts = {(p.topic, p.partition): p.message.split()[1] for p in found}
    assert {("routes", 0): "87", ("routes", 1): "121", ("stops", 0): "114"} == starts
    assert all("broker2" in p.segment for p in found)


def test_a_replica_that_is_behind_is_reported() -> None:
    found = [p for p in _plan("divergent", 1, 3).problems if p.partition == 0]
    assert ["replica", "replica"] == [p.code for p in found]
    assert "ends before offset 87, the replica of broker 1 before 96" == found[0].message


def test_replicas_of_a_quiescent_cluster_have_no_differences() -> None:
    plan = _plan("rest", 1, 2, 3)
    assert [] == plan.problems
    assert [] == _ask(plan, report_named("divergence").query)


def test_the_report_names_batches_that_differ() -> None:
    rows = _ask(_plan("divergent", 1, 2, 3), report_named("divergence").query)
    assert rows
    firsts = {(row["topic"], row["partition"]): row["baseOffset"] for row in reversed(rows)}
    assert {("routes", 0): 87, ("routes", 1): 121, ("stops", 0): 114} == firsts


def test_a_batch_of_another_content_is_found_by_the_report(tmp_path: Path) -> None:
    for broker in (1, 2):
        shutil.copytree(case_dir("epochs") / "rest" / f"broker{broker}", tmp_path / str(broker))
    log = sorted((tmp_path / "2" / "stops-0").glob("*.log"))[0]
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 1
    log.write_bytes(content)
    plan = plan_reading(RealFiles(), [str(tmp_path / "1"), str(tmp_path / "2")], Selection())
    (bad,) = _ask(plan, "select brokerId, count(*) n from replicas where not crcValid group by 1")
    assert (2, 1) == (bad["brokerId"], bad["n"])
    rows = _ask(plan, report_named("divergence").query)
    assert {"stops"} == {row["topic"] for row in rows}


def test_copies_of_one_broker_or_of_an_unknown_one_are_refused(tmp_path: Path) -> None:
    for copy in ("one", "two"):
        shutil.copytree(case_dir("epochs") / "rest" / "broker1", tmp_path / copy)
    paths = [str(tmp_path / "one"), str(tmp_path / "two")]
    with pytest.raises(PartitionTwice):
        plan_reading(RealFiles(), paths, Selection())
    (tmp_path / "two" / "meta.properties").unlink()
    with pytest.raises(PartitionTwice):
        plan_reading(RealFiles(), paths, Selection())
