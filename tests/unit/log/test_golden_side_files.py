"""Every side file that real brokers wrote reads, and is written again byte for byte."""

from __future__ import annotations

import calendar
import time
from collections import Counter
from pathlib import Path

import pytest

from engine.errors import CorruptFile
from engine.log.directory import (
    clean_shutdown,
    leader_epoch_checkpoint,
    meta_properties,
    offset_checkpoint,
    partition_metadata,
    quorum_state,
)
from engine.log.offset_index import parse_offset_index
from engine.log.producer_snapshot import encode_producer_snapshot, parse_producer_snapshot
from engine.log.time_index import parse_time_index
from engine.log.txn_index import encode_txn_index, parse_txn_index
from engine.naming import FileKind, UnknownFileName, parse_segment_file
from tests.golden_cases import CASES, case_dir

WHOLE_CASES = [name for name in CASES if name != "corrupt"]


def _rewritten(path: Path, raw: bytes) -> bytes | None:
    """Return what our writer makes of a file, None for a .log or a name without a format."""
    name, where = path.name, str(path)
    if name in offset_checkpoint.FILE_NAMES:
        offsets = offset_checkpoint.parse_offsets(raw, where)
        return offset_checkpoint.encode_offsets(offsets) if raw else b""
    if name == leader_epoch_checkpoint.FILE_NAME:
        epochs = leader_epoch_checkpoint.parse_leader_epochs(raw, where)
        return leader_epoch_checkpoint.encode_leader_epochs(epochs) if raw else b""
    if name == meta_properties.FILE_NAME:
        date = raw.splitlines()[1].decode()
        written = calendar.timegm(time.strptime(date, "#%a %b %d %H:%M:%S UTC %Y"))
        meta = meta_properties.parse_meta_properties(raw, where)
        return meta_properties.encode_meta_properties(meta, written * 1000)
    if name == partition_metadata.FILE_NAME:
        metadata = partition_metadata.parse_partition_metadata(raw, where)
        return partition_metadata.encode_partition_metadata(metadata)
    if name == clean_shutdown.FILE_NAME:
        marker = clean_shutdown.parse_clean_shutdown(raw, where)
        return clean_shutdown.encode_clean_shutdown(marker)
    if name == quorum_state.FILE_NAME:
        state = quorum_state.parse_quorum_state(raw, where)
        return quorum_state.encode_quorum_state(state)
    return _rewritten_index(path, raw)


def _rewritten_index(path: Path, raw: bytes) -> bytes | None:
    try:
        parsed = parse_segment_file(path.name)
    except UnknownFileName:
        return None
    if parsed.kind in (FileKind.INDEX, FileKind.TIMEINDEX):
        parse = parse_offset_index if parsed.kind is FileKind.INDEX else parse_time_index
        index = parse(raw, parsed.base_offset)
        behind = index.padding_bytes + index.leftover_bytes
        # r-index-odd-size has bytes of its own behind the last entry.
        return index.encode() + (raw[-behind:] if index.leftover_bytes else bytes(behind))
    if parsed.kind is FileKind.TXNINDEX:
        return encode_txn_index(parse_txn_index(raw, str(path)).entries)
    if parsed.kind is FileKind.SNAPSHOT:
        return encode_producer_snapshot(parse_producer_snapshot(raw, str(path)))
    return None


@pytest.mark.parametrize("name", WHOLE_CASES)
def test_side_files_of_real_brokers_are_written_again_byte_for_byte(name: str) -> None:
    counts: Counter[str] = Counter()
    different = []
    for path in sorted(case_dir(name).rglob("*")):
        if not path.is_file():
            continue
        raw = path.read_bytes()
        rewritten = _rewritten(path, raw)
        if rewritten is not None:
            counts[path.suffix or path.name] += 1
            if rewritten != raw:
                different.append(str(path.relative_to(case_dir(name))))
    assert different == []
    assert counts[".index"] > 0
    assert counts[".timeindex"] > 0


@pytest.mark.parametrize("damage", ["body", "count", "crc", "cut", "empty", "garbage", "version"])
def test_damaged_snapshots_are_refused(damage: str) -> None:
    (path,) = (case_dir("corrupt") / "snapshot" / damage).glob("*.snapshot")
    with pytest.raises(CorruptFile):
        parse_producer_snapshot(path.read_bytes(), str(path))
