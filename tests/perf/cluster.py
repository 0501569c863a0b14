"""Three embedded brokers against three real ones, acks=all on three replicas, by librdkafka.

    python -m tests.perf.cluster --peer "Kafka 3.9.1=127.0.0.1:9092=PID,PID,PID" [--peer …]
                                 [--rounds 3] [--mb 256] [--only TEXT] [--settings k=v …]
    python -m tests.perf.cluster --processes …

As `tests.perf.broker`: peers run already, ours is started here, in one process or with
`--processes` in one of each broker; every case runs on all in turn, medians are compared.
"""

from __future__ import annotations

import sys

from tests.perf.broker import Case, Kind, measure, produce_case
from tests.perf.load import produce_pipelined, produce_sync

_CASES = [
    produce_case("acks=all, 1 KB records, 100 KB batches", ">= 3x (1.2x)", 1000, 100_000),
    produce_case("acks=all, 10 KB records, 100 KB batches", ">= 3x (1.2x)", 10_000, 100_000),
    Case("acks=all, one record a request, pipelined", produce_pipelined, ">= 4x (1.5x)"),
    Case("acks=all, one record, wait, next: p50", produce_sync, "<= 0.5x (0.8x)"),
]


def main() -> None:
    """Print one line a case; wanted in brackets is for processes."""
    options = ("--brokers", "3")
    if "--processes" in sys.argv:
        sys.argv.remove("--processes")
        options += ("--processes",)
    measure(_CASES, Kind(replicas=3, acks="all", options=options))


if __name__ == "__main__":
    main()
