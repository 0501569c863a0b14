"""kctl dump-log against Kafka's own tool: whole processes, side by side, as ratios.

    python -m tests.perf.dump_log --kafka "kafka-dump-log.sh" [--rounds 3] [--folder DIR]

`--kafka` is a command to which the tool's options are added.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
from pathlib import Path

from tests.perf.ratios import compare, machine_line, table_line
from tests.perf.segments import write_segment

_GB = 1 << 30
_NAME = "00000000000000000000.log"

#: label, size, bytes a value, bytes a batch, options, wanted ratio
CASES = [
    ("1 GB of 1 KB records, data", _GB, 1000, 100_000, ["--print-data-log"], ">= 4x"),
    ("1 GB of 1 KB records, 16 KB batches, data", _GB, 1000, 16_000, ["--print-data-log"], ">= 4x"),
    ("256 MB of 100 B records, data", _GB // 4, 100, 100_000, ["--print-data-log"], ">= 5x"),
    ("10 MB of 1 KB records, data", 10_000_000, 1000, 100_000, ["--print-data-log"], ">= 5x"),
    ("10 MB of 100 B records, data", 10_000_000, 100, 100_000, ["--print-data-log"], ">= 5x"),
    ("1 MB of 1 KB records, data", 1_000_000, 1000, 100_000, ["--print-data-log"], ">= 5x"),
    ("1 GB of 1 KB records, batches only with CRC", _GB, 1000, 100_000, [], ">= 2x"),
    ("1 GB, 16 KB batches, batches only with CRC", _GB, 1000, 16_000, [], ">= 2x"),
]


def main() -> None:
    """Print one line a case."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kafka", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", default=None)
    parser.add_argument("--only", default="")
    requested = parser.parse_args()
    kctl = [str(Path(sys.executable).parent / "kctl")]
    print(f"{machine_line()}\n\n| case | kctl | Kafka | ratio | wanted |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=requested.folder) as folder:
        for label, size, value, batch, options, wanted in CASES:
            if requested.only not in label:
                continue
            path = Path(folder) / f"{size}-{value}-{batch}" / _NAME
            if not path.exists():
                path.parent.mkdir()
                write_segment(path, total_bytes=size, value_bytes=value, batch_bytes=batch)
            args = [*options, "--files", str(path)]
            ours, peer = compare(
                [*kctl, "dump-log", *args], [*shlex.split(requested.kafka), *args], requested.rounds
            )
            print(table_line(label, ours, peer, wanted), flush=True)


if __name__ == "__main__":
    main()
