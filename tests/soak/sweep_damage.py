"""Every single damage of a small log directory through verify and export: see `damage_sweep.py`.

python -m tests.soak.sweep_damage [--part 0/2] [--compiled]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from itertools import islice

from engine.native.batch_runs import RunTier
from tests.compiled_walk import compiled_runs_here
from tests.damage_sweep import Damage, damages, is_undecidable, run, undamaged

_FAULTS_SHOWN_MAX = 20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", default="0/1", help="number/of how many, to share the work")
    parser.add_argument("--compiled", action="store_true", help="read records by compiled code")
    options = parser.parse_args()
    RunTier.code = compiled_runs_here() if options.compiled else None
    number, parts = map(int, options.part.split("/"))
    started = time.perf_counter()
    counts: Counter[str] = Counter()
    faults: list[tuple[Damage, str]] = []
    for damage in islice(damages(), number, None, parts):
        if is_undecidable(damage):
            counts["not decidable by the format, not run"] += 1
            continue
        outcome = run(damage)
        counts["damages"] += 1
        counts["cuts" if not damage.mask else "flips"] += 1
        counts["that cost rows"] += bool(outcome.lost_rows)
        counts["that were reported"] += outcome.is_reported
        counts["rows lost and named"] += outcome.lost_rows
        faults += [(damage, fault) for fault in outcome.faults]
    files = undamaged()
    print(f"{len(files)} files, {sum(map(len, files.values()))} bytes")
    for name, count in counts.items():
        print(f"{count:>8} {name}")
    print(f"{len(faults):>8} faults, in {time.perf_counter() - started:.0f} s")
    for damage, fault in faults[:_FAULTS_SHOWN_MAX]:
        print(f"{damage.path} at {damage.position}, {damage.mask:#04x}: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
