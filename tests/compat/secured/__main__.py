"""Compare a broker of Kafka and one of ours behind SASL, TLS and access rules.

python -m tests.compat.secured LIBS [--only PART] [--folder DIR] [--newer LIBS]

LIBS holds the jars of a Kafka 3.x release, `--newer` those of a release whose client is tried too.
Go, npm and kcat bring franz-go, kafkajs and kcat, where they are here.
Parts: `denied` (what clients without rights get), `clients` (who is let in, and what others see).
Both brokers are started and stopped. Returns 1 where something differs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.compat.secured.brokers import both_brokers
from tests.compat.secured.denied import compare_denied
from tests.compat.secured.matrix import clients_of, compare_clients
from tests.compat.secured.outside_clients import outside_clients

_PARTS = ("denied", "clients")


def main() -> int:
    """Run the parts that are wanted, each with fresh brokers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("libs")
    parser.add_argument("--only", choices=_PARTS)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--newer")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch)
        differing = 0
        for name in [given.only] if given.only else _PARTS:
            with both_brokers(folder / name, given.libs) as (real, ours):
                if name == "denied":
                    differing += compare_denied(real, ours)
                    continue
                libs = {"of the broker's release": given.libs}
                if given.newer:
                    libs["of a newer release"] = given.newer
                outside = outside_clients(folder)
                differing += compare_clients(real, ours, clients_of(libs) | outside)
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())
