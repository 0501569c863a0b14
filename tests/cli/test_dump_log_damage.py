"""Damage that Kafka's tool meets in ways of its own; each line was printed by the real one."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from engine.records.batch import BatchView
from engine.records.builder import BatchBuilder, BatchSettings
from tests.golden_cases import case_dir
from tests.golden_dump import run_kctl

LOG = "00000000000000000000.log"


def _dump(folder: Path, name: str, *args: str) -> tuple[int, str]:
    code, out, _ = run_kctl(["dump-log", *args, "--files", name], folder)
    return code, out.decode()


def test_one_byte_of_a_txn_index_version_counts(tmp_path: Path) -> None:
    entry = struct.pack(">hqqqq", 0x00FF, 1, 2, 3, 4)
    (tmp_path / "00000000000000000000.txnindex").write_bytes(entry)
    code, out = _dump(tmp_path, "00000000000000000000.txnindex")
    assert 0 == code
    assert out.endswith(
        "version: 0 producerId: 1 firstOffset: 2 lastOffset: 3 lastStableOffset: 4\n"
    )


def test_a_negative_delta_bends_the_sequence_as_in_kafka(tmp_path: Path) -> None:
    builder = BatchBuilder(BatchSettings(producer_id=1, producer_epoch=0, base_sequence=12))
    builder.append(0, b"k", b"v")
    raw = bytearray(builder.build())
    raw[64] = 1  # the offset delta, zig-zag: -1
    (tmp_path / LOG).write_bytes(raw)
    assert -1 == BatchView(memoryview(raw)).read_records()[0].offset
    _, out = _dump(tmp_path, LOG, "--deep-iteration")
    assert "| offset: -1 CreateTime: 0 keySize: 1 valueSize: 1 sequence: -2147483637" in out


@pytest.mark.parametrize(
    ("option", "code", "shown"),
    [
        ("--offsets-decoder", 0, " key: Error at offset 0, skipping. newLimit > capacity: (80 > "),
        (
            "--cluster-metadata-decoder",
            0,
            " payload: Error at 0, skipping. newLimit > capacity: (80",
        ),
        ("--print-data-log", 1, "crc: "),
    ],
)
def test_a_value_beyond_its_message_is_said_by_the_decoder(
    option: str, code: int, shown: str, tmp_path: Path
) -> None:
    source = case_dir("formats") / "data" / "old-v1-none-0" / LOG
    raw = bytearray(source.read_bytes()[:2000])
    (key_size,) = struct.unpack_from(">i", raw, 26)
    struct.pack_into(">i", raw, 30 + max(key_size, 0), 80)
    (size,) = struct.unpack_from(">i", raw, 8)
    struct.pack_into(">i", raw, 8, size)
    end = 12 + size
    cut = raw[: 34 + max(key_size, 0) + 10]
    struct.pack_into(">i", cut, 8, len(cut) - 12)
    (tmp_path / LOG).write_bytes(cut)
    assert end > len(cut)
    got, out = _dump(tmp_path, LOG, option)
    assert code == got
    assert shown in out
