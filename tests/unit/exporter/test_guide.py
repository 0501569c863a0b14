"""The guide and the dashboard name the metrics that there are."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.unit.exporter.test_exporter import Stage

ROOT = Path(__file__).parents[3]
_NAME = re.compile(r"\bk(?:minion|ctl)_(?:kafka|exporter)_\w+")
#: KMinion has it, and the exporter does not: the guide says so.
_MISSING = "kminion_kafka_consumer_group_offset_commits_total"


def names_of_all_metrics() -> set[str]:
    families = Stage().exporter(expiry_of=lambda *_: 0).families()
    return {f"{f.name}_total" if f.kind == "counter" else f.name for f in families}


def test_the_table_of_the_guide_is_all_metrics_with_their_labels() -> None:
    guide = (ROOT / "docs/guides/exporter.md").read_text()
    # Those of embedded brokers have names of Kafka: `test_broker_metrics.py` holds them.
    rows = re.findall(r"^\| `(k(?:minion|ctl)_\w+)` \| (.*?) \|", guide, re.M)
    families = Stage().exporter(expiry_of=lambda *_: 0).families()
    labels = {
        f"{f.name}_total" if f.kind == "counter" else f.name: ", ".join(f.labels) or "–"
        for f in families
    }
    assert labels == dict(rows)
    assert {*labels, _MISSING} == set(_NAME.findall(guide))


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    text = (ROOT / "docs/dashboards/kctl-exporter.json").read_text()
    dashboard = json.loads(text)
    assert set(_NAME.findall(text)) <= names_of_all_metrics()
    assert all(panel["targets"][0]["expr"] for panel in dashboard["panels"])
