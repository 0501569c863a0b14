"""Typer commands of `kctl compat`: for help, completions, and the error of an unknown tool."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from kctl.compat.tools import TOOLS, help_of, run_tool
from kctl.options.cluster import noun

app = noun("Tools of Apache Kafka, in our place: the same options, output and exit codes.")
_PASSED_ON = {"ignore_unknown_options": True, "help_option_names": []}
_Arguments = Annotated[
    list[str] | None,
    typer.Argument(metavar="OPTIONS", help="Options of the tool; --help lists them."),
]


def _register_tool(tool: str) -> None:
    """Register one of Kafka's tools as a Typer command, so that the help lists it.

    The command passes its arguments on unchanged.
    """

    def run(arguments: _Arguments = None) -> int:
        """Run the tool with the given arguments; returns its exit code."""
        return run_tool(tool, arguments or [])

    app.command(tool, help=help_of(tool), context_settings=_PASSED_ON)(run)


for _tool in TOOLS:
    _register_tool(_tool)


@app.command("install", epilog="Example: kctl compat install ~/bin")
def install(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="Directory for the scripts.")],
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite files that kctl did not write, too.")
    ] = False,
    kafka_version: Annotated[
        str,
        typer.Option(metavar="RELEASE", help="Kafka release whose tools are imitated: 3.9 or 4.3."),
    ] = "3.9",
) -> int:
    """Write scripts named like Kafka's tools that call kctl."""
    from kctl.compat.installing import install_scripts
    from kctl.compat.releases import release_named

    release = release_named(kafka_version)
    for path in install_scripts(directory, release, is_forced=force):
        sys.stdout.write(f"{path}\n")
    return 0
