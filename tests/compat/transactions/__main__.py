"""Run transactions of outsiders' clients on brokers of ours, or of Kafka's jars.

    make compat-transactions CLIENTS="confluent franz-go" COUNT=3 KAFKA_LIBS=DIR
    python -m tests.compat.transactions ours|kafka COUNT CLIENTS… --libs DIR [--newer-libs DIR]

What happens stands in `scenario`. Java's clients and Kafka's brokers need the jars of a release,
franz-go needs Go, kafkajs needs Node, each with its registry. On three brokers it takes some five
minutes. Exit code: 0 if all cells pass, 1 if not.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path

from tests.compat.brokers import print_cells, started_cluster
from tests.compat.client_programs import ClientMissing, ClientPrograms
from tests.compat.transactions.cells import CLIENTS, kills_of
from tests.compat.transactions.scenario import Scenario


def main() -> int:
    """Run the clients of the command line, and print a line for each cell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("brokers", choices=("ours", "kafka"))
    parser.add_argument("count", type=int)
    parser.add_argument("clients", nargs="+", choices=CLIENTS)
    parser.add_argument("--libs")
    parser.add_argument("--newer-libs")
    options = parser.parse_args()
    if options.brokers == "kafka" and options.libs is None:
        parser.error("brokers of Kafka need a folder of its jars (--libs)")
    folder = Path(tempfile.mkdtemp(prefix="transactions-"))
    print(f"files are in {folder}")
    programs = ClientPrograms(
        Path(__file__).parent, "worker", folder, options.libs, options.newer_libs
    )
    clients = []
    for client in options.clients:
        try:
            programs.command(client)
            clients.append(client)
        except ClientMissing as missing:
            print(f"FAILED {client}: {missing}")
    cluster = started_cluster(options.brokers, folder, options.libs, options.count)
    scenario = Scenario(cluster, options.count, programs, clients, folder)
    cells = [
        scenario.commit,
        scenario.abort,
        scenario.time_out,
        scenario.zombie,
        scenario.fenced_while_idle,
        *(partial(scenario.killed, kill) for kill in kills_of(options.count)),
    ]
    return int(not print_cells(cluster, cells) or len(clients) < len(options.clients))


if __name__ == "__main__":
    sys.exit(main())
