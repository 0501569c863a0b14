"""Single answers of kctl: the CPU time of each, of one checkout or of several in turn.

    python -m tests.perf.answers TREE [TREE ...] [--rounds 20]

A TREE is a checkout of kctl, by its folder. An embedded cluster with a topic is started for the
time of the run. CPU time is what a busy machine leaves comparable; the least of the rounds is what
a quiet one takes. Compiled modules are kept, as those of an installation are.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.perf.ratios import Cost, machine_line, median, run_once

#: Without the current folder, which may be another checkout.
_KCTL = (sys.executable, "-P", "-c", "from kctl.__main__ import entry; entry()")
_ANSWERS = (
    *("--help", "topics --help", "topics list --help", "topics list", "topics describe clicks"),
    *("offsets get clicks", "groups list", "brokers list", "configs describe --topic clicks"),
)
#: What the interpreter needs by itself, and with Typer as it comes.
_FLOORS = ("pass", "import typer")
_WITHOUT = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "KCTL_CONTEXT", "KCTL_BOOTSTRAP_SERVER")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.perf.answers")
    parser.add_argument("trees", nargs="+", metavar="TREE")
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    trees = [str(Path(tree).resolve()) for tree in options.trees]
    for name in _WITHOUT:
        os.environ.pop(name, None)
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(HOME=folder, XDG_DATA_HOME=folder, XDG_CONFIG_HOME=folder)
        _kctl(trees[0], "cluster start --port 0")
        try:
            _kctl(trees[0], "topics create clicks")
            _report(trees, options.rounds)
        finally:
            _kctl(trees[0], "cluster destroy -y")


def _report(trees: list[str], rounds: int) -> None:
    print(f"{machine_line()}, load {os.getloadavg()[0]:.1f}")
    for code in _FLOORS:
        costs = [run_once([sys.executable, "-c", code]) for _ in range(rounds)]
        print(f"{code:32} {_shown(costs)}")
    for line in _ANSWERS:
        by_tree: dict[str, list[Cost]] = {tree: [] for tree in trees}
        for _ in range(rounds):
            for tree, costs in by_tree.items():
                os.environ["PYTHONPATH"] = tree
                costs.append(run_once([*_KCTL, *line.split()]))
        print(f"{line:32} {' | '.join(map(_shown, by_tree.values()))}", flush=True)


def _shown(costs: list[Cost]) -> str:
    """Return the least and the median CPU time, and the least time by the clock, in ms."""
    least = min(cost.cpu_s for cost in costs) * 1000
    clock = min(cost.wall_s for cost in costs) * 1000
    return f"{least:4.0f} (median {median(costs).cpu_s * 1000:4.0f}), by the clock {clock:4.0f}"


def _kctl(tree: str, line: str) -> None:
    environment = {**os.environ, "PYTHONPATH": tree}
    command = [*_KCTL, *line.split()]
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
