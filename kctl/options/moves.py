"""Options of commands that move replicas: rate, number at a time, and confirmations."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import typer

from kctl.options.cluster import Output, Yes

Throttle = Annotated[
    str | None,
    typer.Option(
        "--throttle",
        metavar="BYTES|auto|none",
        help="What a broker sends and takes in each second for moves: 50MB, auto or none.",
    ),
]
LatencyTopic = Annotated[
    str | None,
    typer.Option(
        "--latency-topic",
        metavar="TOPIC",
        help="With --throttle auto: write records there, and be slower when they take longer.",
    ),
]
MovesPerBroker = Annotated[
    int,
    typer.Option(
        "--moves-per-broker", min=1, metavar="N", help="At once, inwards and outwards each."
    ),
]
PlanOnly = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be done; exit code 5 if anything.")
]
LogDirsThrottle = Annotated[
    str | None,
    typer.Option(
        "--log-dirs-throttle",
        metavar="BYTES",
        help="What a broker copies each second between its directories.",
    ),
]
NoElection = Annotated[
    bool, typer.Option("--no-election", help="Leave leaders where the moves leave them.")
]
NoPause = Annotated[
    bool,
    typer.Option(
        "--no-pause", help="Begin moves even if partitions fall under min.insync.replicas."
    ),
]

IgnoreFreeSpace = Annotated[
    bool,
    typer.Option(
        "--ignore-free-space",
        help="Go on though disks may become full by the estimate, which is shown.",
    ),
]


class MoveOptions(NamedTuple):
    """Options for moves."""

    throttle: Throttle = None
    log_dirs_throttle: LogDirsThrottle = None
    latency_topic: LatencyTopic = None
    moves_per_broker: MovesPerBroker = 5
    no_election: NoElection = False
    no_pause: NoPause = False
    ignore_free_space: IgnoreFreeSpace = False
    dry_run: PlanOnly = False
    yes: Yes = False
    output: Output = "table"


class JobOptions(NamedTuple):
    """Options for the moves of a whole job."""

    throttle: Throttle = None
    latency_topic: LatencyTopic = None
    moves_per_broker: MovesPerBroker = 5
    ignore_free_space: IgnoreFreeSpace = False
    dry_run: PlanOnly = False
    yes: Yes = False
    output: Output = "table"

    @property
    def moves(self) -> MoveOptions:
        """Return these options; those that the command lacks have their defaults."""
        return MoveOptions(**self._asdict())
