"""`kctl schema`: the JSON Schema of a command's `-o json`."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.options.cluster import FORMATS_HELP, one_command

app = one_command()


@app.command(epilog="Example: kctl schema topics list")
def schema(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NOUN [VERB]]",
            help="Command, such as topics list; default: list all commands.",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FORMAT",
            help=f"For a schema: json, yaml; for the list: {FORMATS_HELP}",
        ),
    ] = None,
) -> int:
    """Print the JSON Schema (draft 2020-12) of a command's -o json, or list commands with one."""
    from kctl.commands.schema.schemas import list_schemas, print_schema

    return print_schema(command, output or "json") if command else list_schemas(output or "table")
