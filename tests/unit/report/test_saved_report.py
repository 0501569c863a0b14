"""Reports that are read back, and compared."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from engine.report.gathering import Gathered, ReportOptions
from engine.report.report_building import build_report, saved_form
from engine.report.report_changes import ReportChange, compare_reports
from engine.report.saved_report import BadReport, SavedReport, parse_report
from kctl.commands.report.reporting import document_of
from tests.unit.report.test_parts import entry
from tests.unit.watching.samples import T0, T1, group, row, sample, view

Document = dict[str, Any]


def gathered(**fields: Any) -> Gathered:
    first = sample(0, ends={T0: 0, T1: 0}, sizes={1: {T0: 5 << 20}, 2: {T1: 5}}, **fields)
    last = sample(1_000, ends={T0: 9, T1: 0}, sizes={1: {T0: 6 << 20}, 2: {T1: 5}}, **fields)
    brokers = {1: [entry("a", "1")], 2: [entry("a", "1"), entry("p", None, is_sensitive=True)]}
    return Gathered([first, last], [], brokers, {"t": [entry("r", "9")]}, {}, {}, [], [])


def document(**fields: Any) -> Document:
    found: Document = document_of(build_report(gathered(**fields), ReportOptions()))
    return found


def saved(document: Document) -> SavedReport:
    return parse_report(json.dumps(document).encode(), "r.json")


def test_a_report_is_read_back_as_it_was() -> None:
    report = build_report(gathered(groups=(group("g", {T0: 1}),)), ReportOptions())
    assert saved_form(report) == saved(document_of(report))
    assert [] == compare_reports(saved(document_of(report)), saved_form(report))
    assert ({"a": "1"}, {"r": "9"}) == (
        dict(report.broker_settings[1].settings),
        dict(report.topics[0].settings),
    )
    assert (1 << 20, 9.0) == (report.bytes_per_s, report.records_per_s)


def _new_leader(it: Document) -> None:
    it["topics"][0]["partitions"][0] |= {"leader": 2, "leader_epoch": 0}


def _resized(it: Document) -> None:
    it["topics"][0]["size_bytes"] = 1 << 20


def _larger(it: Document) -> None:
    it["topics"][0]["size_bytes"] = 20 << 20


def _other_setting(it: Document) -> None:
    it["broker_settings"][0]["settings"] = {"b": "2"}


def _more_partitions(it: Document) -> None:
    del it["topics"][0]["partitions"][1]


def _moved(it: Document) -> None:
    it["topics"][0]["partitions"][0]["replicas"] = [1, 3]


def _other_topic(it: Document) -> None:
    it["topics"][0]["topic"] = "old"


def _verdict(it: Document) -> None:
    it["groups"][0]["verdict"] = "STALL"


def _finding(it: Document) -> None:
    it["findings"] = [{"finding": "offline", "subject": "t-0"}]


def _broker(it: Document) -> None:
    it["brokers"] = it["brokers"][:1]


@pytest.mark.parametrize(
    ("edit", "changes"),
    [
        (_new_leader, [ReportChange("leader-changed", "t-0", "2", "1")]),
        (_resized, [ReportChange("grew", "t", str(1 << 20), str((6 << 20) + 5))]),
        (_larger, [ReportChange("shrank", "t", str(20 << 20), str((6 << 20) + 5))]),
        (
            _other_setting,
            [
                ReportChange("setting-changed", "broker 1 a", None, "1"),
                ReportChange("setting-changed", "broker 1 b", "2", None),
            ],
        ),
        (_more_partitions, [ReportChange("partitions-added", "t", "1", "2")]),
        (_moved, [ReportChange("replicas-changed", "t-0", "1,3", "1,2")]),
        (
            _other_topic,
            [ReportChange("topic-deleted", "old"), ReportChange("topic-created", "t")],
        ),
        (_verdict, [ReportChange("group-verdict", "g", "STALL", "OK")]),
        (_finding, [ReportChange("finding-gone", "offline: t-0")]),
        (_broker, [ReportChange("broker-back", "broker 2")]),
    ],
)
def test_a_change_since_a_saved_report_is_found(
    edit: Callable[[Document], None], changes: list[ReportChange]
) -> None:
    fields = {"groups": (group("g", {T0: 0}, (T0,)),)}
    before = document(**fields)
    before["groups"][0]["verdict"] = "OK"
    before["findings"] = []
    edit(before)
    now = document(**fields)
    now["groups"][0]["verdict"], now["findings"] = "OK", []
    assert changes == compare_reports(saved(before), saved(now))


def test_a_new_finding_is_a_change() -> None:
    lacking = document(cluster=view(row(0, (1,)), row(1, (2, 1))))
    before = saved(document())
    after = saved(lacking)
    assert "finding-new" in [one.change for one in compare_reports(before, after)]


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"{", "property name"),
        (b"[]", "the document is list, and not dict"),
        (b"{}", "its format is None, and 1 is read"),
        (b'{"format": 2}', "its format is 2"),
        (b'{"format": 1}', "topics is missing"),
        (b'{"format": 1, "topics": [1]}', "a row of topics is int"),
        (b"\xff", "utf-8"),
    ],
)
def test_another_file_is_refused_with_the_reason(raw: bytes, reason: str) -> None:
    with pytest.raises(BadReport, match="no saved report") as raised:
        parse_report(raw, "r.json")
    assert reason in str(raised.value)


def test_a_value_of_another_type_is_refused() -> None:
    wrong = document()
    wrong["topics"][0]["size_bytes"] = True
    with pytest.raises(BadReport, match="size_bytes is bool, and not int"):
        saved(wrong)


def test_brokers_of_kraft_name_any_of_them_the_controller_which_is_no_change() -> None:
    first = gathered()
    samples = [
        timed._replace(
            sample=timed.sample._replace(view=timed.sample.view._replace(is_controller_known=False))
        )
        for timed in first.samples
    ]
    moved = samples[-1].sample.view._replace(controller_id=2)
    later = samples[-1]._replace(sample=samples[-1].sample._replace(view=moved))
    before = build_report(first._replace(samples=samples), ReportOptions())
    after = build_report(first._replace(samples=[samples[0], later]), ReportOptions())
    assert before.controller_id is None
    assert not any(share.is_controller for share in before.brokers)
    assert [] == compare_reports(saved(document_of(before)), saved_form(after))
