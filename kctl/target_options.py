"""The options that select the cluster of a command, for type checkers."""

from __future__ import annotations

from typing import TypedDict


class TargetOptions(TypedDict, total=False):
    """The option values of a command by which the cluster is found that it affects.

    A command has those of one way to name a cluster.
    """

    bootstrap: str | None
    bootstrap_server: str | None
    context: str | None
    command_config: str | None
    destination: str
    journal: str
    zookeeper: str | None
    data: str | None
    timeout: float
    path: str
    recursive: bool
