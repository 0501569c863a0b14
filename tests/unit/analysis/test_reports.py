"""The catalogue of reports, on logs that real Kafka wrote."""

from __future__ import annotations

from typing import Any

import pytest

from engine.analysis.local_query import run_local_query
from engine.analysis.reports import REPORTS, report_named
from engine.analysis.reports.report import HEADERS, KEYS, VALUES, NoSuchReport
from engine.analysis.splits import Selection, plan_splits
from engine.host.real import RealFiles
from tests.golden_cases import case_dir


def _rows(name: str, case: str) -> list[dict[str, Any]]:
    splits = plan_splits(RealFiles(), [str(case_dir(case) / "data")], Selection())
    query = report_named(name).query
    return run_local_query(query, splits, control=False, max_rows=0).rows


def test_every_report_has_a_name_of_its_own_and_says_what_it_means() -> None:
    assert len(REPORTS) == len({report.name for report in REPORTS})
    for report in REPORTS:
        assert report.reads in (HEADERS, KEYS, VALUES)
        assert report.title and report.meaning


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.name)
def test_every_report_runs(report: Any) -> None:
    assert isinstance(_rows(report.name, "txn"), list)


def test_topics_are_counted() -> None:
    counts = {row["topic"]: row["records"] for row in _rows("topics", "plain")}
    assert {"bulk": 5, "clicks": 400, "orders": 780, "solo": 1} == counts


def test_sound_logs_have_no_gaps_overlaps_or_wrong_checksums() -> None:
    for name in ("gaps", "overlaps", "integrity", "sequence-gaps", "zombies"):
        assert [] == _rows(name, "plain")


def test_transactions_without_a_marker_are_open() -> None:
    opened = {(row["topic"], row["producerId"]) for row in _rows("open-transactions", "txn")}
    assert ("audit", 7) in opened
    assert [] == _rows("open-transactions", "plain")


def test_an_unknown_report_names_the_nearest() -> None:
    with pytest.raises(NoSuchReport, match="most like it: tombstones"):
        report_named("tombstone")
