"""Compare a broker of Kafka and one of ours behind SASL, TLS and access rules.

python -m tests.compat.secured LIBS [--only PART] [--folder DIR]

LIBS holds the jars of a Kafka 3.x release. Parts: `denied` (what clients without rights get).
Both brokers are started and stopped. Returns 1 where something differs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.compat.secured.brokers import both_brokers
from tests.compat.secured.denied import compare_denied

_PARTS = {"denied": compare_denied}


def main() -> int:
    """Run the parts that are wanted, each with fresh brokers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("libs")
    parser.add_argument("--only", choices=_PARTS)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch)
        differing = 0
        for name in [given.only] if given.only else _PARTS:
            with both_brokers(folder / name, given.libs) as (real, ours):
                differing += _PARTS[name](real, ours)
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())
