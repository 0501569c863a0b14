"""Authenticate at a broker of Kafka and at one of ours, right and wrong, and print differences.

    python -m tests.compat.sasl_compare --real LISTENERS [--ours LISTENERS] [--only REGEX]
        [--verbose] [--record FILE]

LISTENERS are `plaintext=H:P,sasl=H:P,reauth=H:P,onlyplain=H:P`, with the users of
`sasl_handshakes.py`. What is recorded is what `tests/unit/broker/test_sasl_handshakes.py` expects.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from tests.compat.sasl_conversation import SocketWire
from tests.compat.sasl_handshakes import Handshake, handshakes, play

#: Kafka reads the body of another API in place of a token, and responds in its form.
ACCEPTED: Final = frozenset(
    (
        "state: metadata for a token",
        "state: metadata of a wrong body for a token",
        "state: produce of acks 0 for a token",
        "again: again with a request between",
    )
)


def main() -> int:
    """Run; returns 1 where something differs that should not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--real", required=True)
    parser.add_argument("--ours")
    parser.add_argument("--only", default="")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--record", type=Path)
    given = parser.parse_args()
    cases = [case for case in handshakes() if re.search(given.only, case.name)]
    real = _played(given.real, cases)
    if given.record:
        lines = {case.name: found for case, found in zip(cases, real, strict=True)}
        given.record.write_text(json.dumps(lines, indent=0) + "\n")
    ours = real if given.ours is None else _played(given.ours, cases)
    differing = set()
    for case, theirs, own in zip(cases, real, ours, strict=True):
        if theirs != own:
            differing.add(case.name)
        if given.verbose or theirs != own:
            print(f"# {case.name}")
            print(*(f"  real {line}" for line in theirs), sep="\n")
        if theirs != own:
            print(*(f"  ours {line}" for line in own), sep="\n")
    print(f"{len(cases)} handshakes, {len(differing)} differ, {len(differing & ACCEPTED)} accepted")
    return int(bool(differing - ACCEPTED))


def _played(text: str, cases: list[Handshake]) -> list[list[str]]:
    addresses = dict(part.split("=", 1) for part in text.split(","))
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda case: play(case, SocketWire(addresses[case.listener])), cases))


if __name__ == "__main__":
    sys.exit(main())
