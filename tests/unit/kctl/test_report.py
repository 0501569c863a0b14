"""`kctl report cluster` on brokers in memory: rows, a saved report, a page in a browser."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from engine.client.settings import Address
from engine.errors import EngineError
from engine.host.certificate_expiry import NoCertificate
from engine.host.ports import FileMissing
from engine.report import gathering
from engine.report.saved_report import BadReport
from kctl import exits
from kctl.arguments import UnreadableArgument
from kctl.commands.report import reporting
from kctl.commands.report.charts import NoChartLibrary
from kctl.commands.report.page import cluster_page
from kctl.commands.report.reporting import ReportRequest, report_cluster
from kctl.connect import ClusterOptions
from kctl.render.rows import UnknownFormat
from kctl.schemas import schema_of
from tests.unit.exporter.test_exporter import Stage

REQUEST = ReportRequest(None, None, "2s", "json")
OPTIONS = ClusterOptions(timeout_s=5)
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
HOSTILE = "</style><script>alert(1)</script>"


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    stage = Stage()
    monkeypatch.setattr(reporting, "connect", lambda _options: stage.client)
    monkeypatch.setattr(reporting, "_local_files", lambda _client: None)
    return stage


def report(capsys: pytest.CaptureFixture[str], request: ReportRequest = REQUEST) -> Any:
    assert exits.OK == report_cluster(OPTIONS, request)
    document = json.loads(capsys.readouterr().out)
    Draft202012Validator(schema_of("report cluster")).validate(document)
    return document


def test_a_report_has_all_parts_as_its_schema_says(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    document = report(capsys)
    assert (3, 2, 3) == (
        document["broker_count"],
        document["topic_count"],
        document["partition_count"],
    )
    assert [1, 2, 3] == [row["broker_id"] for row in document["brokers"]]
    assert [("g", 2, "STOP")] == [
        (row["group"], row["lag"], row["verdict"]) for row in document["groups"]
    ]
    assert ["t"] == [row["topic"] for row in document["retention"]]
    assert [] == document["not_known"]
    assert ["idle-group"] == [row["finding"] for row in document["findings"]]


def test_rates_are_sampled_over_the_interval(
    stage: Stage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[int] = []
    pause = stage.client.connections.pause

    def writing(duration_ms: int) -> None:
        if duration_ms > 300:
            pauses.append(duration_ms)
            stage.produce(10)
        pause(duration_ms)

    monkeypatch.setattr(stage.client.connections, "pause", writing)
    document = report(capsys)
    assert pauses
    (topic,) = [row for row in document["topics"] if row["topic"] == "t"]
    assert topic["records_per_s"] > 0
    assert topic["bytes_per_s"] > 0


def test_changes_since_a_saved_report_are_shown(
    stage: Stage, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "saved.json"
    path.write_text(json.dumps(report(capsys)))
    stage.cluster.create_topic("u", ((1, 2),))
    stage.cluster.pass_time(1_000)
    document = report(capsys, REQUEST._replace(since=str(path)))
    assert ("topic-created", "u") in [
        (row["change"], row["subject"]) for row in document["changes"]
    ]
    assert document["since_ms"] is not None


def test_a_table_has_every_part_under_its_title(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exits.OK == report_cluster(OPTIONS, REQUEST._replace(output=None))
    printed = capsys.readouterr().out
    assert printed.index("Findings\n") < printed.index("Brokers\n") < printed.index("Topics\n")
    assert "kctl groups lag g" in printed
    assert "Changes" not in printed


def test_formats_of_one_table_have_the_findings(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exits.OK == report_cluster(OPTIONS, REQUEST._replace(output="csv"))
    heading, row = capsys.readouterr().out.splitlines()
    assert "severity,finding,subject,cause,meaning,command" == heading
    assert row.startswith("notice,idle-group,group g,")


def test_a_report_without_one_broker_says_what_is_not_known(
    stage: Stage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = Address("here", stage.cluster.brokers[2].ports["PLAINTEXT"])
    submit = stage.client.connections.submit

    def lost(address: Address, call: Any, *rest: Any, **options: Any) -> None:
        is_lost = address == gone and call.api_name != "Metadata"
        submit(Address("nowhere", 1) if is_lost else address, call, *rest, **options)

    monkeypatch.setattr(stage.client.connections, "submit", lost)
    stage.client.timeout_ms = 3_000
    document = report(capsys)
    assert "unreachable" in [row["finding"] for row in document["findings"]]
    assert {"broker 2", "topic t"} <= {row["subject"] for row in document["not_known"]}
    assert None is next(r for r in document["brokers"] if r["broker_id"] == 2)["size_bytes"]


def test_samples_are_spread_over_the_interval(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = list[int]()
    take = gathering.take_sample

    def noted(client: Any, timeout_ms: int) -> Any:
        times.append(client.clock.monotonic_ms())
        return take(client, timeout_ms)

    monkeypatch.setattr(gathering, "take_sample", noted)
    stage.cluster.pass_time(90_000)
    for count in (5, 2):
        gathering.gather_report(stage.client, gathering.ReportOptions(40_000, count))
        assert [40_000 // (count - 1)] * (count - 1) == [
            after - before for before, after in pairwise(times)
        ]
        times.clear()


def test_certificates_are_findings_when_they_expire_soon(
    stage: Stage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ports = {broker.ports["PLAINTEXT"]: id_ for id_, broker in stage.cluster.brokers.items()}
    days = {1: 400, 2: 20}

    def expiry_of(host: str, port: int, _timeout_s: float) -> int:
        if ports[port] not in days:
            raise NoCertificate(host, port, "none")
        return stage.client.clock.wall_ms() + days[ports[port]] * 86_400_000

    monkeypatch.setattr(reporting, "_expiry_reader", lambda _client: expiry_of)
    document = report(capsys)
    found = [row for row in document["findings"] if row["finding"] == "certificate"]
    assert [("critical", "broker 3"), ("notice", "broker 2")] == [
        (row["severity"], row["subject"]) for row in found
    ]
    assert [1, 2, 3] == [row["broker_id"] for row in document["certificates"]]


def test_a_topic_whose_settings_are_not_shown_has_no_forecast(
    stage: Stage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    describe = gathering.describe_configs

    def denied(client: Any, resources: Any) -> Any:
        return {
            resource: EngineError("denied") if resource.name == "t" else entries
            for resource, entries in describe(client, resources).items()
        }

    monkeypatch.setattr(gathering, "describe_configs", denied)
    document = report(capsys)
    assert ("topic t", "settings", "denied") in [
        (row["subject"], row["part"], row["reason"]) for row in document["not_known"]
    ]
    assert "t" not in [row["topic"] for row in document["retention"]]


def test_a_bad_file_or_format_is_refused_before_the_cluster_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("{}")
    with pytest.raises(BadReport):
        report_cluster(OPTIONS, REQUEST._replace(since=str(path)))
    with pytest.raises(UnknownFormat):
        report_cluster(OPTIONS, REQUEST._replace(output="pdf"))


def test_a_page_that_cannot_be_written_is_refused_before_the_cluster_is_asked(
    tmp_path: Path,
) -> None:
    with pytest.raises(FileMissing, match="nosuch: no such file"):
        report_cluster(OPTIONS, REQUEST._replace(html=str(tmp_path / "nosuch" / "page.html")))
    with pytest.raises(UnreadableArgument, match="--interval"):
        report_cluster(OPTIONS, REQUEST._replace(interval="0s"))


def test_a_saved_report_may_be_a_pipe(
    stage: Stage, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    saved, pipe = json.dumps(report(capsys)).encode(), tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = Thread(target=lambda: pipe.write_bytes(saved))
    writer.start()
    assert report(capsys, REQUEST._replace(since=str(pipe)))["since_ms"] is not None
    writer.join()


def test_names_that_no_drawing_can_have_are_drawn_as_text(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    document = report(capsys)
    document["groups"][0] |= {"group": "a\x1b[31m\0\uffff\ud800b", "lag": 3}
    page = cluster_page(document)
    assert "\\x1b[31m" in page
    assert not {"\x1b", "\0"} & set(page)
    drawings = "".join(re.findall(r"<svg.*?</svg>", page, re.DOTALL))
    assert "\\x1b[31m" in drawings
    assert not {"\uffff", "\ud800"} & set(drawings)


def test_without_the_library_of_charts_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(NoChartLibrary) as raised:
        report_cluster(OPTIONS, REQUEST._replace(html="page.html"))
    assert "kctl-kafka[report]" in (raised.value.hint or "")


# -- the page


class _Page(HTMLParser):
    """Tags of a page, its ids, and what it would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            is_inside = (value or "").startswith("#")
            if name in ("src", "href", "xlink:href", "srcset", "action") and not is_inside:
                self.loads.append(value or "")


def page_of(stage: Stage, capsys: pytest.CaptureFixture[str]) -> str:
    document = report(capsys)
    document["groups"][0]["group"] = HOSTILE
    document["findings"][0] |= {"cause": HOSTILE, "subject": HOSTILE}
    document["brokers"][0] |= {"host": HOSTILE, "bytes_per_s": 4096}
    return cluster_page(document)


def test_a_page_has_all_parts_and_loads_nothing(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    text = page_of(stage, capsys)
    page = _Page(text)
    assert [] == page.loads
    assert "script" not in page.tags
    assert len(page.ids) == len(set(page.ids))
    assert {"findings", "brokers", "imbalance", "groups", "retention"} <= {*page.ids}
    assert page.tags.count("svg") >= 5
    assert "url(" not in text
    assert "@import" not in text
    assert "currentColor" in text


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
@pytest.mark.slow
def test_a_browser_shows_the_page_on_a_phone_without_errors(
    stage: Stage, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A script that is added to a copy measures the page: nothing sticks out at 360 pixels."""
    measure = """<iframe id=phone style="width:360px;height:800px;border:0"></iframe><script>
const phone = document.getElementById("phone");
phone.srcdoc = PAGE;
phone.onload = () => {
  const page = phone.contentDocument;
  const size = e => Math.round(e.getBoundingClientRect().width);
  const isWhole = e => getComputedStyle(e).overflowX == "visible";
  const leftOf = e => isWhole(e) ? 0 : e.getBoundingClientRect().left;
  document.title = JSON.stringify({
    page: page.documentElement.scrollWidth,
    room: page.documentElement.clientWidth,
    wide: [...page.querySelectorAll("body *")]
      .filter(e => !e.closest(".scroll > *") && e.getBoundingClientRect().right > 360)
      .map(e => e.outerHTML.slice(0, 80)),
    charts: [...page.querySelectorAll("svg")].map(size),
    cut: [...page.querySelectorAll("svg text")]
      .filter(e => e.getBoundingClientRect().left < Math.max(0, leftOf(e.closest("svg"))))
      .map(e => e.textContent),
    heads: page.querySelectorAll("h2").length,
    text: getComputedStyle(page.querySelector("svg text")).fill,
    body: getComputedStyle(page.body).color,
  });
  document.body.replaceWith(document.title);
};
</script>"""
    page = json.dumps(page_of(stage, capsys)).replace("</", "<\\/")
    path = tmp_path / "page.html"
    path.write_text(f"<!doctype html><body>{measure.replace('PAGE', page)}")
    done = subprocess.run(
        [
            *(str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"),
            *(f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=5000"),
            path.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=180,
        check=True,
    )
    found = re.search(r"<title>(\{.*?\})</title>", done.stdout)
    assert found is not None, done.stdout[-500:]
    seen = json.loads(found[1])
    assert (seen["room"], []) == (seen["page"], seen["wide"])
    assert all(0 < width <= 360 for width in seen["charts"])
    # The browser's font may be wider than the one that charts were laid out with.
    assert seen["cut"] == []
    assert seen["heads"] >= 10
    # Texts of charts have the colour of the page, in light and in dark.
    assert seen["body"] == seen["text"]
