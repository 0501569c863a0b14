"""What a strict export refuses, on a disk in memory."""

from __future__ import annotations

import io

import pyarrow.parquet as pq
import pytest

from engine.analysis.batch_order import OffsetSpan
from engine.analysis.damage import DamagedData
from engine.analysis.export_task import ExportJob, TaskReport
from engine.analysis.parquet_export import PROBLEMS_FILE, ExportPlan, export_with
from engine.analysis.problem import Problem
from engine.host.memory_held_file import MemoryHeldFiles

SPANS = [
    OffsetSpan("t", 0, "0.log", 0, 0, 0, 10, False, False, False),
    OffsetSpan("t", 0, "15.log", 15, 0, 15, 20, False, False, False),
]


def _problem(code: str) -> Problem:
    return Problem("t", 0, "0.log", 7, 1, code, "why")


def _export(plan: ExportPlan, found: list[Problem], spans: list[OffsetSpan]) -> list[str]:
    """Return the codes of the problems that an export lists."""
    files = MemoryHeldFiles()
    files.make_dir("/exports")

    def run(job: ExportJob) -> list[TaskReport]:
        return [TaskReport([], 1, 0, found, spans)]

    try:
        export_with(run, files, plan, "job")
    except DamagedData:
        assert [] == files.list_dir("/exports")
        raise
    table = pq.read_table(io.BytesIO(files.read_bytes(f"/exports/out/{PROBLEMS_FILE}")))
    return [row["code"] for row in table.to_pylist()]


@pytest.mark.parametrize("code", ["bad_crc", "bad_offset", "bad_epoch", "lost", "overlap"])
def test_strict_refuses_every_problem_but_an_unfinished_write(code: str) -> None:
    plan = ExportPlan([], "/exports/out", ("offset",))
    found = [_problem("torn_tail"), _problem(code)]
    assert ["torn_tail", code] == _export(plan, found, [])
    with pytest.raises(DamagedData, match=r"1 problem with the data, the first: 0\.log"):
        _export(plan._replace(strict=True), found, [])
    assert ["torn_tail"] == _export(plan._replace(strict=True), found[:1], [])


def test_strict_refuses_offsets_that_are_missing_between_segments() -> None:
    plan = ExportPlan([], "/exports/out", ("offset",))
    assert ["gap"] == _export(plan, [], SPANS)
    with pytest.raises(DamagedData):
        _export(plan._replace(strict=True), [], SPANS)


def test_strict_refuses_a_transaction_that_was_not_decided() -> None:
    plan = ExportPlan([], "/exports/out", ("offset",), problems=(_problem("undecided"),))
    assert ["undecided"] == _export(plan, [], [])
    with pytest.raises(DamagedData):
        _export(plan._replace(strict=True), [], [])
