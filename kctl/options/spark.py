"""Options of the commands that query log directories, on Spark or in this process."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.value_options import KEY_SCHEMA_HELP, KEYS_HELP, REGISTRY_HELP, SCHEMAS_HELP, VALUES_HELP

TopicsOption = Annotated[
    str | None, typer.Option(metavar="REGEX", help="Regular expression for whole topic names.")
]
PartitionsOption = Annotated[
    str | None, typer.Option(metavar="NUMBERS", help="Partition numbers, such as 0,2,5-9.")
]
ControlOption = Annotated[
    bool, typer.Option("--include-control", help="Include transaction markers as records.")
]
IsolationOption = Annotated[
    str,
    typer.Option(
        metavar="LEVEL", help="read_uncommitted, or read_committed: without aborted records."
    ),
]
StrictOption = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Compute all checksums of what is read, and print nothing if it is damaged (exit 4).",
    ),
]
EngineOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="local: DuckDB in this process; spark; auto: local below 20 GiB and without --master,"
        " --remote, --conf.",
    ),
]
#: Without one Spark runs as `local[*]`; commands with `--engine` may run without Spark.
MasterOption = Annotated[
    str | None,
    typer.Option(
        metavar="MASTER", help="Run on Spark with this master, such as spark://HOST:PORT."
    ),
]
RemoteOption = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Run on the server of Spark Connect at sc://HOST:PORT."),
]
ConfOption = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark; may be repeated."),
]
ValuesOption = Annotated[str | None, typer.Option(metavar="WAY", help=VALUES_HELP)]
KeysOption = Annotated[str | None, typer.Option(metavar="WAY", help=KEYS_HELP)]
KeySchemaOption = Annotated[str | None, typer.Option(metavar="FILE", help=KEY_SCHEMA_HELP)]
RegistryOption = Annotated[str | None, typer.Option(metavar="URL", help=REGISTRY_HELP)]
SchemasOption = Annotated[str | None, typer.Option(metavar="PATH", help=SCHEMAS_HELP)]
ViewsOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="File of saved views; KCTL_VIEWS, or ~/.config/kctl/views.sql by default.",
    ),
]
