"""Options of commands that move replicas: throttles, moves at a time, confirmation."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import typer

from kctl.options.cluster import Output, Yes

Throttle = Annotated[
    str | None,
    typer.Option(
        "--throttle",
        metavar="BYTES|auto|none",
        help="Bytes per second that each broker sends and receives for moves: 50MB, auto or none.",
    ),
]
LatencyTopic = Annotated[
    str | None,
    typer.Option(
        "--latency-topic",
        metavar="TOPIC",
        help="With --throttle auto: slow down when records written to this topic take longer.",
    ),
]
MovesPerBroker = Annotated[
    int,
    typer.Option(
        "--moves-per-broker",
        min=1,
        metavar="N",
        help="Moves at a time to each broker, and from it.",
    ),
]
PlanOnly = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Show what would be done; exit code 5 if there is anything to do."
    ),
]
LogDirsThrottle = Annotated[
    str | None,
    typer.Option(
        "--log-dirs-throttle",
        metavar="BYTES",
        help="Bytes per second that a broker copies between its log directories.",
    ),
]
NoElection = Annotated[
    bool, typer.Option("--no-election", help="Do not elect preferred leaders after the moves.")
]
NoPause = Annotated[
    bool,
    typer.Option(
        "--no-pause", help="Start moves even if partitions are below min.insync.replicas."
    ),
]

IgnoreFreeSpace = Annotated[
    bool,
    typer.Option(
        "--ignore-free-space",
        help="Continue even if disks may become full by the estimate, which is shown.",
    ),
]


class MoveOptions(NamedTuple):
    """The options of commands that move replicas of topics."""

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
    """The options of commands that move replicas as part of a larger job."""

    throttle: Throttle = None
    latency_topic: LatencyTopic = None
    moves_per_broker: MovesPerBroker = 5
    ignore_free_space: IgnoreFreeSpace = False
    dry_run: PlanOnly = False
    yes: Yes = False
    output: Output = "table"

    @property
    def moves(self) -> MoveOptions:
        """Return the job's options as MoveOptions, with defaults for those that jobs lack."""
        return MoveOptions(**self._asdict())
