"""Run groups of outsiders' clients on brokers of ours, or of Kafka's jars.

    make compat-groups CLIENTS="confluent franz-go" COUNT=3 KAFKA_LIBS=DIR
    python -m tests.compat.groups ours|kafka COUNT CLIENTS… --libs DIR [--newer-libs DIR]

Clients: those of `cells.ASSIGNORS`. What happens stands in `scenario`. Java's clients and Kafka's
brokers need the jars of a release, franz-go and sarama need Go, kafkajs needs Node, each with its
registry. A batch of cells takes one to three minutes. Exit code: 0 if all cells pass, 1 if not.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tests.compat.brokers import print_cells, started_cluster
from tests.compat.client_programs import ClientMissing, ClientPrograms
from tests.compat.groups.cells import ASSIGNORS, Cell, batches_of
from tests.compat.groups.scenario import Scenario


def main() -> int:
    """Run the clients of the command line, and print a line for each cell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("brokers", choices=("ours", "kafka"))
    parser.add_argument("count", type=int)
    parser.add_argument("clients", nargs="+", choices=tuple(ASSIGNORS))
    parser.add_argument("--libs")
    parser.add_argument("--newer-libs")
    options = parser.parse_args()
    if options.brokers == "kafka" and options.libs is None:
        parser.error("brokers of Kafka need a folder of its jars (--libs)")
    folder = Path(tempfile.mkdtemp(prefix="groups-"))
    print(f"files are in {folder}")
    cluster = started_cluster(options.brokers, folder, options.libs, options.count)
    programs = ClientPrograms(
        Path(__file__).parent, "member", folder, options.libs, options.newer_libs
    )

    def run(cells: Sequence[Cell]) -> list[str]:
        try:
            return Scenario(cluster, options.count, programs, folder).run(cells)
        except ClientMissing as missing:
            return [f"FAILED {cells[0].client}: {missing}"]

    batches = [cells for client in options.clients for cells in batches_of(client)]
    return int(not print_cells(cluster, [partial(run, cells) for cells in batches]))


if __name__ == "__main__":
    sys.exit(main())
