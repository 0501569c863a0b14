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
    source: Annotated[str, typer.Argument(metavar="SRC", help=f"Source: {_CLUSTER}.")],
    destination: Annotated[str, typer.Argument(metavar="DST", help=f"Destination: {_CLUSTER}.")],
    topics: Annotated[
        list[str] | None, typer.Argument(metavar="[TOPIC]...", help="Topics to copy.")
    ] = None,
    match: Annotated[
        str | None,
        typer.Option("--match", metavar="REGEX", help="Also topics whose complete name matches."),
    ] = None,
    prefix: Annotated[
        str,
        typer.Option("--prefix", metavar="TEXT", help="Prefix of topic names at the destination."),
    ] = "",
    start: Annotated[
        str, typer.Option("--from", metavar="POINT", help=f"Start: {_POINT}")
    ] = "start",
    until: Annotated[
        str,
        typer.Option(
            "--to", "--until", metavar="POINT", help="Stop before this point, given like --from."
        ),
    ] = "end",
    groups: Annotated[
        list[str] | None,
        typer.Option(
            "--groups",
            "-g",
            metavar="GROUP",
            help="Translate this group's committed offsets; may be repeated.",
        ),
    ] = None,
    sample: Annotated[
        str | None,
        typer.Option(
            "--sample",
            metavar="SHARE",
            help="Copy only this share of the keys, with all their records: 5%, 0.05.",
        ),
    ] = None,
    anonymised: Annotated[
        list[str] | None,
        typer.Option(
            "--anonymise",
            metavar="PART=HOW",
            help="hash, mask or drop key, value or headers; may be repeated.",
        ),
    ] = None,
    anonymise_key: Annotated[
        str | None,
        typer.Option(
            "--anonymise-key",
            metavar="FILE",
            help="Hash by HMAC-SHA-256 with the file's bytes as key, not by SHA-256.",
        ),
    ] = None,
    throttle: Annotated[
        str | None,
        typer.Option("--throttle", metavar="BYTES", help="Maximum bytes per second, such as 20MB."),
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
            help="Append to topics with records; after a complete copy: copy newer records.",
        ),
    ] = False,
    no_settings: Annotated[
        bool,
        typer.Option(
            "--no-settings", help="Create topics with the destination's default settings."
        ),
    ] = False,
    replication_factor: Annotated[
        int | None,
        typer.Option(
            "-r",
            "--replication-factor",
            min=1,
            metavar="N",
            help="Replication factor of created topics; default: the source's, if possible.",
        ),
    ] = None,
    at_least_once: Annotated[
        bool,
        typer.Option(
            "--at-least-once", help="Copy without transactions: a crash may duplicate records."
        ),
    ] = False,
    journal: Annotated[
        str | None,
        typer.Option(
            "--journal", metavar="FILE", help="Journal for resuming; default: in $XDG_STATE_HOME."
        ),
    ] = None,
    source_config: Annotated[
        str | None,
        typer.Option("--source-config", metavar="FILE", help="Kafka client.properties for SRC."),
    ] = None,
    destination_config: Annotated[
        str | None,
        typer.Option(
            "--destination-config", metavar="FILE", help="Kafka client.properties for DST."
        ),
    ] = None,
    settings: Settings = None,
    source_settings: Annotated[
        list[str] | None,
        typer.Option("--source-X", metavar="KEY=VALUE", help="Client setting for SRC only."),
    ] = None,
    destination_settings: Annotated[
        list[str] | None,
        typer.Option("--destination-X", metavar="KEY=VALUE", help="Client setting for DST only."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be copied; write nothing.")
    ] = False,
    timeout: Timeout = TIMEOUT_S,
    output: Output = "table",
) -> int:
    """Copy topics to another cluster: keys, values, headers, timestamps, partitions.

    Copies committed records up to --to; its default is the end of each partition at the start.

    Topics that the destination lacks are created with the source's partitions and settings.

    After an interruption, even kill -9, the same command continues: read_committed consumers see
    each record once. After a complete copy, the same command with --append copies newer records.

    Offsets differ from the source's; --groups translates committed offsets of groups, which must
    have no members at the destination.

    Ctrl-C stops after the commit of the current records; a second one stops at once.
    """
    from kctl.client_overrides import merge_over_file, parse_client_overrides
    from kctl.commands.copy.copying import copy_topics
    from kctl.commands.copy.request import CopyRequest, parse_content_rules

    both = parse_client_overrides(settings or []).shared
    request = CopyRequest(
        source=source,
        destination=destination,
        topics=tuple(topics or ()),
        match=match,
        prefix=prefix,
        start=start,
        until=until,
        groups=tuple(dict.fromkeys(groups or ())),
        rules=parse_content_rules(sample, anonymised or [], anonymise_key),
        throttle=throttle,
        compression=compression,
        append=append,
        with_settings=not no_settings,
        replication_factor=replication_factor,
        at_least_once=at_least_once,
        journal=journal,
        source_config=source_config,
        destination_config=destination_config,
        source_settings=merge_over_file(both, parse_client_overrides(source_settings or []).shared),
        destination_settings=merge_over_file(
            both, parse_client_overrides(destination_settings or []).shared
        ),
        dry_run=dry_run,
        timeout_s=timeout,
        output=output,
    )
    return copy_topics(request)
