"""Implementation of `kctl topics set-rf`: select topics, add or remove their replicas."""

from __future__ import annotations

from hashlib import sha256

from engine.planner import planner
from kctl.commands.reassign.jobs import JobRequest, run_job
from kctl.connect import ClusterOptions, connect
from kctl.options.moves import MoveOptions
from kctl.selection import matching_topics


def set_replication_factor(
    options: ClusterOptions,
    factor: int,
    names: list[str],
    match: str | None,
    moves: MoveOptions,
) -> int:
    """Reassign topics to another replication factor; returns the exit code.

    It is a job: the same command resumes it after an interruption.
    """
    with connect(options) as client:
        topics = sorted(set(matching_topics(client, names, match)))
        client.view_of_existing(topics)
    # The same topics give the same job name, so that a job can be resumed.
    digest = sha256("\n".join(topics).encode()).hexdigest()[:12]
    request = JobRequest(
        f"set-rf-{factor}-{digest}",
        lambda model, constraints: planner.set_replication_factor(
            model, dict.fromkeys(topics, factor), constraints
        ),
        moves,
    )
    return run_job(options, request)
