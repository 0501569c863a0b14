"""Log directories from Python."""

from __future__ import annotations

import pytest

from engine.analysis.columns import UnknownColumn
from engine.analysis.logs import NoSuchView, open_logs
from tests.golden_cases import case_dir

LOGS = str(case_dir("plain") / "data")


def test_sql_gives_an_arrow_table() -> None:
    table = open_logs(LOGS).sql("select topic, count(*) n from records group by topic order by 1")
    assert {"topic": ["bulk", "clicks", "orders", "solo"], "n": [5, 400, 780, 1]} == (
        table.to_pydict()
    )


def test_a_view_is_a_stream_of_the_wanted_columns() -> None:
    logs = open_logs(LOGS, topics="orders", partitions="0-1")
    table = logs.read("records", ["offset", "partition"]).read_all()
    assert ["partition", "offset"] == table.column_names
    query = "select count(*) n from records"
    assert logs.sql(query).to_pydict() == {"n": [table.num_rows]}
    assert {0, 1} == set(table["partition"].to_pylist())


def test_what_is_not_there_is_refused() -> None:
    logs = open_logs(LOGS)
    with pytest.raises(NoSuchView):
        logs.read("nosuch")
    with pytest.raises(UnknownColumn):
        logs.read("records", ["nosuch"])
    with pytest.raises(ValueError):
        open_logs(LOGS, partitions="x")
