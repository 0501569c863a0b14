"""Options of the commands that compare a cluster with files of declared state."""

from __future__ import annotations

from typing import Annotated

import typer

StateFiles = Annotated[
    list[str] | None,
    typer.Option(
        "-f",
        "--file",
        metavar="FILE|DIR",
        help="YAML or JSON file, or a folder of such files; - is stdin; may be repeated.",
    ),
]
Prune = Annotated[
    bool,
    typer.Option(
        "--prune",
        help="Also delete resources of the declared kinds that no file declares, and unset such "
        "settings.",
    ),
]
