"""Log directories from Python."""

from __future__ import annotations

import re
import shutil
import warnings
from pathlib import Path

import pytest
from pyarrow.dataset import write_dataset

from engine.analysis.columns import UnknownColumn
from engine.analysis.damage import DamagedData
from engine.analysis.logs import DamageFound, Logs, NoSuchView, open_logs
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


@pytest.fixture
def damaged(tmp_path: Path) -> Logs:
    """Open logs of which one batch has a wrong checksum."""
    data = tmp_path / "data"
    shutil.copytree(LOGS, data)
    segment = data / "orders-0" / f"{0:020}.log"
    content = bytearray(segment.read_bytes())
    # The last byte of the first batch's attributes.
    content[22] ^= 0x40
    segment.write_bytes(content)
    return open_logs(str(data), topics="orders")


def test_a_query_warns_of_batches_that_it_skips(damaged: Logs) -> None:
    whole = open_logs(LOGS, topics="orders")
    with pytest.warns(DamageFound, match=r"orders-0.*Logs\.damage") as warned:
        rows = damaged.sql("select key from records")
    assert warned[0].filename == __file__
    assert rows.num_rows < whole.sql("select key from records").num_rows
    assert {(place.topic, place.partition) for place in damaged.damage} == {("orders", 0)}
    assert whole.damage == []


def test_each_query_of_a_line_warns(damaged: Logs) -> None:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("default")
        for _ in range(3):
            damaged.sql("select key from records")
    assert [__file__] * 3 == [warning.filename for warning in warned]


def test_a_stream_that_a_thread_of_arrow_reads_warns_too(damaged: Logs, tmp_path: Path) -> None:
    with pytest.warns(DamageFound):
        write_dataset(damaged.read("records", ["key"]), str(tmp_path / "out"), format="parquet")
    assert list((tmp_path / "out").iterdir())


def test_warnings_of_a_module_can_be_ignored(damaged: Logs) -> None:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("default")
        warnings.filterwarnings("ignore", category=DamageFound, module=re.escape(__name__))
        damaged.sql("select key from records")
    assert [] == warned


def test_a_stream_warns_at_its_end(damaged: Logs) -> None:
    stream = damaged.read("records", ["key"])
    with pytest.warns(DamageFound):
        stream.read_all()
    assert damaged.damage


@pytest.mark.parametrize("column", ["key", "offset"])
def test_what_is_strict_refuses_damage(damaged: Logs, column: str) -> None:
    with pytest.raises(DamagedData):
        damaged.sql(f"select {column} from records", strict=True)
    with pytest.raises(DamagedData):
        damaged.read("records", [column], strict=True).read_all()
