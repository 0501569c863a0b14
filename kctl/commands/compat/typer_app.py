"""`kctl compat` as Typer knows it: for help, completions, and what is no tool's name."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from kctl.options.cluster import noun

app = noun("Tools of Apache Kafka, in our place: the same options, output and exit codes.")
_PASSED_ON = {"ignore_unknown_options": True, "help_option_names": []}
_Words = Annotated[
    list[str] | None, typer.Argument(metavar="OPTIONS", help="Those of the tool; --help lists.")
]


@app.command("kafka-reassign-partitions", context_settings=_PASSED_ON)
def reassign_partitions(words: _Words = None) -> int:
    """Move replicas as kafka-reassign-partitions.sh of Kafka 3.9.1 does."""
    from kctl.compat.tools import REASSIGN_PARTITIONS, run_tool

    return run_tool(REASSIGN_PARTITIONS, words or [])


@app.command("kafka-leader-election", context_settings=_PASSED_ON)
def leader_election(words: _Words = None) -> int:
    """Have leaders elected as kafka-leader-election.sh of Kafka 3.9.1 does."""
    from kctl.compat.tools import LEADER_ELECTION, run_tool

    return run_tool(LEADER_ELECTION, words or [])


@app.command("kafka-consumer-groups", context_settings=_PASSED_ON)
def consumer_groups(words: _Words = None) -> int:
    """Show and change consumer groups as kafka-consumer-groups.sh of Kafka 3.9.1 does."""
    from kctl.compat.tools import CONSUMER_GROUPS, run_tool

    return run_tool(CONSUMER_GROUPS, words or [])


@app.command("install", epilog="Example: kctl compat install ~/bin")
def install(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="Where the scripts go.")],
    force: Annotated[
        bool, typer.Option("--force", help="Also over scripts that kctl did not write.")
    ] = False,
) -> int:
    """Write scripts with the names of Kafka's tools that run kctl."""
    from kctl.compat.installing import install_scripts

    for path in install_scripts(directory, is_forced=force):
        sys.stdout.write(f"{path}\n")
    return 0
