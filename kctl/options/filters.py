"""Options that select records by their content, for `consume` and `dump-log`."""

from __future__ import annotations

from typing import Annotated

import typer

Key = Annotated[
    str | None, typer.Option("--key", metavar="TEXT", help="Only records with exactly this key.")
]
KeyRegex = Annotated[
    str | None, typer.Option("--key-regex", metavar="REGEX", help="Only records whose key matches.")
]
ValueRegex = Annotated[
    str | None,
    typer.Option("--value-regex", metavar="REGEX", help="Only records whose value matches."),
]
HeaderName = Annotated[
    str | None, typer.Option("--header", metavar="HEADER", help="Only records with this header.")
]
JsonPath = Annotated[
    list[str] | None,
    typer.Option(
        "--json-path",
        metavar="PATH[=VALUE]",
        help="Only records whose JSON value has something at this JSONPath.",
    ),
]
