"""`kctl exporter` on brokers in memory: printed once, and as pages."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import pytest

from engine.client.settings import ClientSettings
from engine.exporter.exporter import ExporterOptions
from engine.exporter.text_format import NoPrometheusClient
from engine.host import certificate_expiry, http_server
from engine.host.http_server import Page, PageServer
from engine.host.streams import TlsSettings
from kctl import exits
from kctl.arguments import UnreadableArgument
from kctl.commands.exporter import serving
from kctl.commands.exporter.serving import (
    ExporterRequest,
    MetricPages,
    create_exporter,
    export_metrics,
)
from kctl.connect import ClusterOptions
from tests.unit.exporter.test_exporter import Stage

ONCE = ExporterRequest("127.0.0.1", 0, "10s", "8s", has_groups=True, is_once=True)


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    stage = Stage()
    monkeypatch.setattr(serving, "connect", lambda _options: stage.client)
    return stage


def test_metrics_may_be_printed_once(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    assert exits.OK == export_metrics(ClusterOptions(), ONCE)
    printed = capsys.readouterr().out
    assert 'kminion_kafka_consumer_group_topic_lag{group_id="g",topic_name="t"} 2.0\n' in printed
    assert stage.client.settings == ClientSettings()


def test_an_interval_that_is_none_is_refused_before_the_cluster_is_asked() -> None:
    with pytest.raises(UnreadableArgument):
        export_metrics(ClusterOptions(), ONCE._replace(min_interval="soon"))


def test_metrics_are_served_until_ctrl_c(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    served: list[dict[str, Page]] = []
    interrupts: list[int] = []

    class Interrupted(PageServer):
        """Notes its pages, and gets a Ctrl-C once it serves."""

        def __init__(self, host: str, port: int, pages: Mapping[str, Page]) -> None:
            served.append(dict(pages))
            super().__init__(host, port, pages)

        def serve(self) -> None:
            interrupts.append(self.port)
            raise KeyboardInterrupt

    monkeypatch.setattr(http_server, "PageServer", Interrupted)
    assert exits.OK == export_metrics(ClusterOptions(), ONCE._replace(is_once=False))
    (pages,), (port,) = served, interrupts
    assert b"metrics are at /metrics\n" == pages["/"]("").body
    assert b"ok\n" == pages["/healthz"]("").body
    assert pages["/metrics"]("").body.startswith(b"# HELP")
    assert f"metrics are at http://127.0.0.1:{port}/metrics;" in capsys.readouterr().err


def test_a_library_that_is_missing_is_an_error_before_the_cluster_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(NoPrometheusClient):
        export_metrics(ClusterOptions(), ONCE)


@pytest.mark.parametrize(("timeout_s", "scrape_timeout_ms"), [(30, 8_000), (2, 2_000), (0.0001, 1)])
def test_a_scrape_has_its_own_time_or_that_of_the_command(
    timeout_s: float, scrape_timeout_ms: int
) -> None:
    assert scrape_timeout_ms == ONCE.exporter_options(timeout_s).timeout_ms


def test_a_page_is_written_once_for_each_scrape(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = MetricPages(stage.exporter(min_interval_ms=10_000))
    first = pages.render("")
    assert (200, True) == (first.status, first.body.startswith(b"# HELP"))
    assert pages.render("") is first
    other = pages.render("application/openmetrics-text")
    assert other.body.endswith(b"# EOF\n")
    assert pages.render("application/openmetrics-text") is other
    stage.cluster.pass_time(10_000)
    assert pages.render("application/openmetrics-text") is not other


def test_certificates_are_checked_where_connections_have_them(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificate_expiry, "fetch_certificate_expiry_ms", lambda *_: 5_000)
    plain = create_exporter(stage.client, ExporterOptions("9"))
    stage.client.settings = stage.client.settings._replace(tls=TlsSettings())
    secured = create_exporter(stage.client, ExporterOptions("9"))
    names = [{family.name for family in one.families()} for one in (plain, secured)]
    assert {"kctl_kafka_certificate_expiry_timestamp_seconds"} == names[1] - names[0]
