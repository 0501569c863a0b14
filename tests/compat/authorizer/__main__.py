"""Compare our authorizer with Kafka's own AclAuthorizer.

python -m tests.compat.authorizer LIBS [--first SEED] [--sets N] [--store FILE]

LIBS holds the jars of a Kafka 3.x release with ZooKeeper's, whose server runs in the same process.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.compat.authorizer.cases import Case, as_requested, case_of, decisions_of, line_of

_PROGRAM = Path(__file__).with_name("Authorize.java")


def main() -> int:
    """Print the requests that differ; returns 1 if there is one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("libs")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--sets", type=int, default=500)
    parser.add_argument("--requests", type=int, default=40)
    parser.add_argument("--store")
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.sets)
    cases = [case_of(seed, requests=given.requests) for seed in seeds]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            ["java", "-cp", f"{given.libs}/*", str(_PROGRAM), folder],
            input="".join(f"{line_of(case)}\n" for case in cases),
            stdout=subprocess.PIPE,
            encoding="utf-8",
            check=True,
        )
    different, allowed, stored = 0, 0, []
    for seed, case, line in zip(seeds, cases, done.stdout.splitlines(), strict=True):
        answer = json.loads(line)
        allowed += answer["decisions"].count("1")
        for text in differences(case, answer):
            different += 1
            sys.stdout.write(f"seed {seed}: {text}\n")
        stored.append(case | answer)
    count = given.sets * given.requests
    sys.stdout.write(f"{count} requests, {allowed} allowed by Kafka, {different} differ\n")
    if given.store:
        Path(given.store).write_text(
            "".join(f"{line_of(case)}\n" for case in stored), encoding="utf-8"
        )
    return 1 if different else 0


def differences(case: Case, answer: Case) -> list[str]:
    """Return the requests that ours and Kafka's decide otherwise, a line each."""
    ours, real = decisions_of(case, answer["znodes"]), answer["decisions"]
    found = []
    for title, expected, decided in (
        ("the broker", real, ours.of_broker),
        ("with reasons", as_requested(real, case), ours.with_reasons),
    ):
        for request, wanted, digit in zip(case["requests"], expected, decided, strict=True):
            if wanted != digit:
                found.append(f"{title}: Kafka {wanted}, ours {digit}: {request}")
    return found


if __name__ == "__main__":
    sys.exit(main())
