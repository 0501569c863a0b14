"""The log directories of two brokers that were asked the same: names, batches, side files.

    python -m tests.compat.wire.log_dirs REAL_DIR OUR_DIR [PREFIX]

Run it when both brokers have stopped. Times that a broker sets, and what they are compressed into,
are left out, as `masking` says.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

from tests.compat.wire.masking import masked_records

#: Files whose bytes are compared as they are.
_SAME_BYTES = ("leader-epoch-checkpoint",)
#: Sparse indexes depend on how large the writes were; names alone are compared.
_NAMES_ALONE = (".index", ".timeindex", ".txnindex")
_SNAPSHOT_HEAD = struct.Struct(">hIi")
#: Producer, epoch, last sequence, last offset, offset delta, time, coordinator, first offset.
_SNAPSHOT_ROW = struct.Struct(">qhiqiqiq")


def compare(real: Path, ours: Path, prefix: str) -> list[str]:
    """Return every difference between the directories of topics with a prefix."""
    names = [
        {path.name for path in root.glob(f"{prefix}*") if path.is_dir()} for root in (real, ours)
    ]
    names = [{name for name in found if not name.endswith("-delete")} for found in names]
    found = [f"only in real: {name}" for name in sorted(names[0] - names[1])]
    found += [f"only in ours: {name}" for name in sorted(names[1] - names[0])]
    for name in sorted(names[0] & names[1]):
        found += _compare_partition(real / name, ours / name)
    return found


def _compare_partition(real: Path, ours: Path) -> list[str]:
    files = [{p.name for p in root.iterdir() if ".deleted" not in p.name} for root in (real, ours)]
    found = [f"{real.name}: only in real: {name}" for name in sorted(files[0] - files[1])]
    found += [f"{real.name}: only in ours: {name}" for name in sorted(files[1] - files[0])]
    for name in sorted(files[0] & files[1]):
        if name.endswith(_NAMES_ALONE) or name == "partition.metadata":
            continue
        if not _is_same(name, (real / name).read_bytes(), (ours / name).read_bytes()):
            found.append(f"{real.name}/{name} differs")
    return found


def _is_same(name: str, real: bytes, ours: bytes) -> bool:
    if real == ours:
        return True
    if name in _SAME_BYTES:
        return False
    if name.endswith(".snapshot"):
        return _snapshot(real) == _snapshot(ours)
    return masked_records(real) == masked_records(ours)


def _snapshot(raw: bytes) -> list[tuple[int, ...]]:
    """Return a snapshot's producers without the times at which they wrote."""
    rows = [
        _SNAPSHOT_ROW.unpack_from(raw, at)
        for at in range(_SNAPSHOT_HEAD.size, len(raw) - _SNAPSHOT_ROW.size + 1, _SNAPSHOT_ROW.size)
    ]
    return sorted(row[:5] + row[6:] for row in rows)


def main() -> int:
    """Print the differences; returns 1 where there is one."""
    real, ours, *rest = sys.argv[1:]
    found = compare(Path(real), Path(ours), rest[0] if rest else "w")
    for line in found:
        print(line)
    print(f"{len(found)} differences")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
