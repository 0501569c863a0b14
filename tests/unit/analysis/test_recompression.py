"""What batches would take with another codec."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.analysis import recompression
from engine.analysis.local_query import run_local_query
from engine.analysis.splits import Selection, plan_splits
from engine.host.real import RealFiles
from engine.records.batch import BatchView
from engine.records.batch_header import HEADER_BYTES
from engine.records.builder import BatchBuilder, BatchSettings
from engine.records.codec import Codec
from tests.golden_cases import case_dir

_COLUMNS = {
    Codec.GZIP: "gzipSize",
    Codec.SNAPPY: "snappySize",
    Codec.LZ4: "lz4Size",
    Codec.ZSTD: "zstdSize",
}
_SIZES = "size, rawSize, gzipSize, snappySize, lz4Size, zstdSize"


def _batch(codec: Codec, number: int = 0) -> bytes:
    builder = BatchBuilder(BatchSettings(codec=codec, base_offset=3 * number, leader_epoch=0))
    for record in range(3):
        builder.append(1_000 + number, b"key", b"value " * 100 + b"%d" % record)
    return bytes(builder.build())


def _rows(folder: Path, what: str = _SIZES) -> list[dict[str, Any]]:
    splits = plan_splits(RealFiles(), [str(folder)], Selection())
    query = f"select {what} from batches order by topic, partition, baseOffset"
    return run_local_query(query, splits, control=False, max_rows=0).rows


def _log(folder: Path, *batches: bytes) -> Path:
    (folder / "t-0").mkdir(parents=True)
    (folder / "t-0" / f"{0:020}.log").write_bytes(b"".join(batches))
    return folder


@pytest.mark.parametrize("codec", Codec)
def test_sizes_are_those_of_batches_with_these_codecs(tmp_path: Path, codec: Codec) -> None:
    (row,) = _rows(_log(tmp_path / "log", _batch(codec)))
    assert len(_batch(codec)) == row["size"]
    assert len(_batch(Codec.NONE)) == row["rawSize"]
    for other, column in _COLUMNS.items():
        assert len(_batch(other)) == row[column]


def test_what_cannot_be_opened_has_no_sizes(tmp_path: Path) -> None:
    damaged = bytearray(_batch(Codec.GZIP))
    damaged[-1] ^= 1
    unopened = bytearray(_batch(Codec.GZIP))
    unopened[HEADER_BYTES] ^= 1
    view = BatchView(memoryview(unopened))
    unopened[17:21] = view.computed_crc().to_bytes(4)
    for content in (damaged, unopened):
        (row,) = _rows(_log(tmp_path / str(len(list(tmp_path.iterdir()))), bytes(content)))
        assert {None} == {row[name] for name in ("rawSize", *_COLUMNS.values())}


def test_of_a_large_split_the_same_batches_are_compressed_in_every_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = [_batch(Codec.NONE, number) for number in range(100)]
    log = _log(tmp_path / "log", *batches)
    assert 100 == sum(row["zstdSize"] is not None for row in _rows(log))
    monkeypatch.setattr(recompression, "COMPRESSED_SPLIT_BYTES_MAX", 1_000)
    rows = _rows(log, "crc, zstdSize")
    assert [row["crc"] % 16 == 0 for row in rows] == [row["zstdSize"] is not None for row in rows]
    assert 1 <= sum(row["zstdSize"] is not None for row in rows) <= 20


def test_batches_of_old_formats_have_no_sizes() -> None:
    rows = _rows(case_dir("formats") / "data", f"magic, {_SIZES}")
    assert {row["magic"] for row in rows} >= {0, 1}
    assert all(row["rawSize"] is None for row in rows if row["magic"] < 2)
