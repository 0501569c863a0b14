"""Metrics as Prometheus reads them."""

from __future__ import annotations

import sys

import pytest
from prometheus_client.parser import text_string_to_metric_families

from engine.exporter.metric_family import COUNTER, SUMMARY, MetricFamily, SummaryTotal, only
from engine.exporter.text_format import (
    NoPrometheusClient,
    check_library,
    library_page,
    metrics_page,
)

FAMILIES = [
    MetricFamily("lag", "Unread.", ("group_id", "topic_name"), [(('g"\n', "t"), 2.0)]),
    MetricFamily("changes", "Seen.", (), only(3), COUNTER),
    MetricFamily("none", "Nothing.", ("a",), []),
]


def test_families_are_text_that_prometheus_reads() -> None:
    page = metrics_page(FAMILIES, "")
    assert page.content_type.startswith("text/plain; version=")
    read = list(text_string_to_metric_families(page.body.decode()))
    assert [("lag", "gauge"), ("changes", "counter"), ("none", "gauge")] == [
        (family.name, family.type) for family in read
    ]
    (lag,), (changes,), _ = (family.samples for family in read)
    assert ({"group_id": 'g"\n', "topic_name": "t"}, 2.0) == (lag.labels, lag.value)
    assert ("changes_total", 3.0) == (changes.name, changes.value)


@pytest.mark.parametrize(
    "accept",
    [
        "",
        "text/plain;version=1.0.0;escaping=allow-utf-8",
        "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,*/*;q=0.1",
        "application/openmetrics-text",
        "application/openmetrics-text;version=1.0.0;escaping=dots",
    ],
)
def test_pages_are_those_of_the_library(accept: str) -> None:
    values = [0.0, -1.0, 1e6, 1234567.5, 1e16, 1e-9, 1e300, 123456.0, float("inf"), float("nan")]
    rows = [(('a"\n\\b', f"{index}%s"), value) for index, value in enumerate(values)]
    summary = [(("", "0.5"), 1.0), (("", "0.9"), 1.5), (("b", "0.5"), 0.0), (("b", "0.9"), 0.0)]
    families = [
        *FAMILIES,
        MetricFamily("z_a", 'Help\n of "a" \\ family.', ("z", "a"), rows),
        MetricFamily("counted", "Count.", ("b",), [(("é",), 7.0)], COUNTER),
        MetricFamily(
            *("s", "Spread.", ("z", "quantile"), summary, SUMMARY),
            [SummaryTotal(("",), 4, 12.0), SummaryTotal(("b",), 1, 1.0)],
        ),
        MetricFamily("empty", "Spread.", ("z", "quantile"), [], SUMMARY),
    ]
    assert library_page(families, accept) == metrics_page(families, accept)


def test_a_summary_has_its_quantiles_count_and_sum() -> None:
    rows = [(("1", "0.5"), 2.0), (("1", "0.99"), 9.0), (("2", "0.5"), 0.0), (("2", "0.99"), 1.0)]
    totals = [SummaryTotal(("1",), 4, 12.0), SummaryTotal(("2",), 1, 1.0)]
    family = MetricFamily("took", "Spread.", ("broker_id", "quantile"), rows, SUMMARY, totals)
    for accept in ("", "application/openmetrics-text; version=1.0.0"):
        lines = metrics_page([family], accept).body.decode().splitlines()
        assert [
            'took{broker_id="1",quantile="0.5"} 2.0',
            'took{broker_id="1",quantile="0.99"} 9.0',
            'took_count{broker_id="1"} 4.0',
            'took_sum{broker_id="1"} 12.0',
            'took{broker_id="2",quantile="0.5"} 0.0',
        ] == [line for line in lines if not line.startswith("#")][:5]


def test_a_reader_may_ask_for_open_metrics() -> None:
    page = metrics_page(FAMILIES, "application/openmetrics-text; version=1.0.0")
    assert page.content_type.startswith("application/openmetrics-text")
    assert page.body.endswith(b"# EOF\n")


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(NoPrometheusClient) as raised:
        check_library()
    assert "kctl-kafka[exporter]" in (raised.value.hint or "")
