"""Golden directories, exported: exactly the records that an independent client read."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from engine.analysis.columns import RECORDS
from engine.analysis.export_task import ExportJob, run_export_task
from engine.analysis.isolation import hide_uncommitted, partitions_of
from engine.analysis.splits import Selection, Split, plan_splits
from engine.host.real import RealFiles
from tests.truth_tables import TruthSet, exported_records, truth_records, truth_sets

#: Logs that the client could not read rightly, being damaged, so that there is no truth.
UNREADABLE = {
    "r-magic-last": "a magic byte above 2 is refused by clients, and read as 2 in files",
    "r-crc-old-segment": "the client returned garbage for the batch with the wrong CRC",
    "r-txn-no-txnindex": "without its index the broker gave aborted records to the client",
}
SETS = [*truth_sets("read_uncommitted"), *truth_sets("read_committed")]


def _export(splits: list[Split], folder: Path) -> dict[str, list[tuple[object, ...]]]:
    job = ExportJob(str(folder), tuple(column.name for column in RECORDS), False)
    report = run_export_task(job, splits, "part")
    if not report.files:
        return {}
    return exported_records(pq.read_table(folder / report.files[0].name).to_pylist())


def _splits(truth: TruthSet, split_bytes: int = 128 << 20) -> list[Split]:
    found = plan_splits(RealFiles(), [str(truth.log_dir)], Selection(), split_bytes)
    if truth.isolation == "read_uncommitted":
        return found
    return [
        s for group in partitions_of(found) for s in hide_uncommitted(RealFiles(), group).splits
    ]


@pytest.mark.parametrize("truth", SETS, ids=lambda t: f"{t.case}-{t.folder}-{t.isolation}")
def test_exported_records_are_those_of_the_client(truth: TruthSet, tmp_path: Path) -> None:
    got = _export(_splits(truth), tmp_path)
    files = truth.files()
    assert files
    for topic, path in files.items():
        if topic not in UNREADABLE:
            assert truth_records(path) == got.get(topic, [])


@pytest.mark.parametrize("split_bytes", [1, 700, 5000])
@pytest.mark.parametrize("case", ["plain", "codecs", "txn"])
def test_records_do_not_depend_on_where_segments_are_cut(
    case: str, split_bytes: int, tmp_path: Path
) -> None:
    truth = TruthSet(case, "data", "read_uncommitted")
    whole, cut = _splits(truth), _splits(truth, split_bytes)
    assert len(whole) < len(cut)
    (tmp_path / "whole").mkdir()
    assert _export(whole, tmp_path / "whole") == _export(cut, tmp_path)
