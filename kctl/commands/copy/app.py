"""`kctl copy`: topics from one cluster to another."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.options.cluster import TIMEOUT_S, Output, Settings, Timeout, one_command

app = one_command()

_CLUSTER = "a context, HOST:PORT,… or embedded"
_POINT = "start, end, an offset, -COUNT, -1h, @MILLISECONDS or 2026-01-31T12:00:00Z."


@app.command(
    epilog="Examples: kctl copy prod staging orders --from -1h --dry-run · kctl copy "
    "kafka1:9092 embedded --match 'app-.*' --throttle 20MB · kctl copy old new orders --groups "
    "billing"
)
def copy(
    source: Annotated[
        str, typer.Argument(metavar="SRC", help=f"Where records come from: {_CLUSTER}.")
    ],
    destination: Annotated[str, typer.Argument(metavar="DST", help=f"Where they go: {_CLUSTER}.")],
    topics: Annotated[
        list[str] | None, typer.Argument(metavar="[TOPIC]...", help="The topics to copy.")
    ] = None,
    match: Annotated[
        str | None,
        typer.Option("--match", metavar="REGEX", help="And topics whose whole name matches."),
    ] = None,
    prefix: Annotated[
        str, typer.Option("--prefix", metavar="TEXT", help="In front of names at the destination.")
    ] = "",
    start: Annotated[
        str, typer.Option("--from", metavar="POINT", help=f"Where to start: {_POINT}")
    ] = "start",
    until: Annotated[
        str,
        typer.Option("--to", "--until", metavar="POINT", help="Where to stop: as --from."),
    ] = "end",
    groups: Annotated[
        list[str] | None,
        typer.Option(
            "--groups",
            "-g",
            metavar="GROUP",
            help="Commit where this group stands, translated; may be repeated.",
        ),
    ] = None,
    sample: Annotated[
        str | None,
        typer.Option(
            "--sample",
            metavar="SHARE",
            help="So many of the keys, with all their records: 5%, 0.05.",
        ),
    ] = None,
    anonymised: Annotated[
        list[str] | None,
        typer.Option(
            "--anonymise",
            metavar="PART=HOW",
            help="hash, mask or drop key, value or headers; can be given several times.",
        ),
    ] = None,
    anonymise_key: Annotated[
        str | None,
        typer.Option(
            "--anonymise-key",
            metavar="FILE",
            help="Hash by HMAC-SHA-256 with the bytes of a file, not by SHA-256.",
        ),
    ] = None,
    throttle: Annotated[
        str | None,
        typer.Option("--throttle", metavar="BYTES", help="Bytes a second at most, as 20MB."),
    ] = None,
    compression: Annotated[
        str,
        typer.Option(
            "-z", "--compression", metavar="CODEC", help="none, gzip, snappy, lz4 or zstd."
        ),
    ] = "none",
    append: Annotated[
        bool,
        typer.Option(
            "--append",
            help="Also behind records that are at the destination; after a whole copy: what came "
            "since.",
        ),
    ] = False,
    no_settings: Annotated[
        bool,
        typer.Option("--no-settings", help="Make topics with the settings of the destination."),
    ] = False,
    replication_factor: Annotated[
        int | None,
        typer.Option(
            "-r",
            "--replication-factor",
            min=1,
            metavar="N",
            help="Of topics that are made; else the source's, if there are as many brokers.",
        ),
    ] = None,
    at_least_once: Annotated[
        bool,
        typer.Option(
            "--at-least-once", help="Without transactions: after a crash some records come twice."
        ),
    ] = False,
    journal: Annotated[
        str | None,
        typer.Option(
            "--journal", metavar="FILE", help="What the copy goes on by; else in $XDG_STATE_HOME."
        ),
    ] = None,
    source_config: Annotated[
        str | None,
        typer.Option("--source-config", metavar="FILE", help="Kafka client.properties of SRC."),
    ] = None,
    destination_config: Annotated[
        str | None,
        typer.Option("--destination-config", metavar="FILE", help="Those of DST."),
    ] = None,
    settings: Settings = None,
    source_settings: Annotated[
        list[str] | None,
        typer.Option("--source-X", metavar="KEY=VALUE", help="A client setting of SRC alone."),
    ] = None,
    destination_settings: Annotated[
        list[str] | None,
        typer.Option("--destination-X", metavar="KEY=VALUE", help="One of DST alone."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be copied; write nothing.")
    ] = False,
    timeout: Timeout = TIMEOUT_S,
    output: Output = "table",
) -> int:
    """Copy topics to another cluster: keys, values, headers, times, partitions.

    Copied is what is committed up to --to, which is where partitions end when the copy begins.
    Topics that the destination lacks are made with the partitions and settings of the source.

    The same command goes on where one stopped, also after kill -9: readers of committed records
    see each record once. Once it is whole, the same command with --append copies what came since.
    Offsets are not the same; --groups translates those of groups, which must have no members at the
    destination.

    Ctrl-C ends it behind what is committed; a second one ends it at once.
    """
    from kctl.client_overrides import client_overrides, over_file
    from kctl.commands.copy.copying import copy_topics
    from kctl.commands.copy.request import CopyRequest, content_rules

    both = client_overrides(settings or []).shared
    request = CopyRequest(
        source=source,
        destination=destination,
        topics=tuple(topics or ()),
        match=match,
        prefix=prefix,
        start=start,
        until=until,
        groups=tuple(dict.fromkeys(groups or ())),
        rules=content_rules(sample, anonymised or [], anonymise_key),
        throttle=throttle,
        compression=compression,
        append=append,
        with_settings=not no_settings,
        replication_factor=replication_factor,
        at_least_once=at_least_once,
        journal=journal,
        source_config=source_config,
        destination_config=destination_config,
        source_settings=over_file(both, client_overrides(source_settings or []).shared),
        destination_settings=over_file(both, client_overrides(destination_settings or []).shared),
        dry_run=dry_run,
        timeout_s=timeout,
        output=output,
    )
    return copy_topics(request)
