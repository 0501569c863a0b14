"""`kctl compact`: how dirty compacted logs of a directory are; clean them now."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.commands.cluster_options import Output, Yes, noun

app = noun("Compaction of log directories: how dirty logs are, clean them now.")

_Topics = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[TOPIC]...", help="Compacted topics; else those that a cleaner has noted."
    ),
]
_Directory = Annotated[
    str, typer.Option("--dir", metavar="DIR", help="A log directory no broker uses.")
]
_Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="As if topics had this; may be repeated."),
]


@app.command("plan", epilog="Example: kctl compact plan --dir /var/kafka users")
def plan(
    directory: _Directory,
    topics: _Topics = None,
    settings: _Settings = None,
    output: Output = "table",
) -> int:
    """Show how dirty logs are: what a cleaner would read, and may free at most.

    Settings of topics are in no log directory: they are Kafka's defaults but for --set. A topic
    that is named is taken as compacted. The directory is not changed.
    """
    from kctl.commands.compact_work import CompactRequest, show_dirtiness

    return show_dirtiness(
        CompactRequest(directory, topics or [], settings or [], None, None, True, output)
    )


@app.command(
    "run", epilog="Example: kctl compact run --dir /var/kafka users --out copy --buffer 64MB"
)
def run_compaction(
    directory: _Directory,
    topics: _Topics = None,
    settings: _Settings = None,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Clean the directory itself.")
    ] = False,
    out: Annotated[
        str | None, typer.Option("--out", metavar="DIR", help="Clean a copy, which goes here.")
    ] = None,
    buffer: Annotated[
        str,
        typer.Option(
            "--buffer", metavar="BYTES", help="Memory for keys; more passes where it is too small."
        ),
    ] = "128MiB",
    yes: Yes = False,
    output: Output = "table",
) -> int:
    """Clean logs now, however dirty they are: the last value of each key stays.

    As a broker's cleaner does it, byte for byte: never the active segment, no open transaction,
    tombstones until delete.retention.ms is over. Several passes where keys do not fit.
    """
    from kctl.commands.compact_work import CompactRequest, clean_now

    request = CompactRequest(
        directory, topics or [], settings or [], in_place, out, yes, output, buffer
    )
    return clean_now(request)
