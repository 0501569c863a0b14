"""Options that select records by their content: those of `consume` and `dump-log`."""

from __future__ import annotations

from typing import Annotated

import typer

Key = Annotated[
    str | None, typer.Option("--key", metavar="TEXT", help="Only records with exactly this key.")
]
KeyRegex = Annotated[
    str | None, typer.Option("--key-regex", metavar="REGEX", help="Only keys that match.")
]
ValueRegex = Annotated[
    str | None, typer.Option("--value-regex", metavar="REGEX", help="Only values that match.")
]
HeaderName = Annotated[
    str | None, typer.Option("--header", metavar="HEADER", help="Only records with this header.")
]
JsonPath = Annotated[
    list[str] | None,
    typer.Option(
        "--json-path",
        metavar="PATH[=VALUE]",
        help="Only JSON values where this JSONPath leads somewhere.",
    ),
]
