"""Compare our assignors with Kafka's own classes.

python -m tests.compat.assignors LIBS [--first SEED] [--cases N] [--store FILE]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from tests.compat.assignors.cases import assigned, case_of, in_order, line_of

_PROGRAM = Path(__file__).with_name("Assign.java")


def main() -> int:
    """Print the cases that differ; returns 1 if there is one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("libs")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--store")
    given = parser.parse_args()
    cases = [case_of(seed) for seed in range(given.first, given.first + given.cases)]
    done = subprocess.run(
        ["java", "-cp", f"{given.libs}/*", str(_PROGRAM)],
        input="".join(f"{line_of(case)}\n" for case in cases),
        capture_output=True,
        text=True,
        check=True,
    )
    stored, different, failed = [], 0, 0
    for number, (case, line) in enumerate(zip(cases, done.stdout.splitlines(), strict=True)):
        answer = json.loads(line)
        expected = None if isinstance(answer, str) else in_order(answer)
        found = in_order(assigned(case))
        failed += expected is None
        if expected != found:
            different += 1
            sys.stdout.write(f"seed {given.first + number}: {line_of(case)}\n")
            sys.stdout.write(
                f"  Kafka {answer if expected is None else expected}\n  ours  {found}\n"
            )
        stored.append({**case, "assigned": expected})
    sys.stdout.write(f"{len(cases)} cases, {different} differ; in {failed} Kafka fails\n")
    if given.store:
        Path(given.store).write_text("".join(f"{line_of(case)}\n" for case in stored))
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
