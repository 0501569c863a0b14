"""`kctl consume`: print records of partitions, or of topics as a member of a group."""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.connect import ClusterOptions, settings_in_file
from kctl.options.cluster import (
    TIMEOUT_S,
    Bootstrap,
    CommandConfig,
    Context,
    Timeout,
    one_command,
)
from kctl.options.filters import HeaderName, JsonPath, Key, KeyRegex, ValueRegex

app = one_command()

_POINT = "start, end, an offset, -COUNT, -1h, @MILLISECONDS or 2026-01-31T12:00:00Z."


@app.command(
    epilog="Examples: kctl consume clicks -e -n 10 · kctl consume clicks:0 --from -5 -f "
    "'%p %o %k %s\\n' · kctl consume clicks --from -1h -o ndjson | jq .value"
)
def consume(
    selectors: Annotated[
        list[str],
        typer.Argument(metavar="TOPIC[:PARTITIONS]...", help="clicks, clicks:3, clicks:0,4-6."),
    ],
    start: Annotated[
        str, typer.Option("--from", metavar="POINT", help=f"Start: {_POINT}")
    ] = "start",
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="POINT", help=f"Stop before: {_POINT}"),
    ] = None,
    exit_at_end: Annotated[
        bool, typer.Option("-e", "--exit", help="Stop at the current end (--until end).")
    ] = False,
    max_messages: Annotated[
        int | None,
        typer.Option("-n", "--max-messages", min=0, metavar="N", help="Stop after N records."),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            "-g",
            "--group",
            metavar="GROUP",
            help="Join a group, and commit the offsets of printed records.",
        ),
    ] = None,
    read_committed: Annotated[
        bool | None,
        typer.Option(
            "--read-committed/--read-uncommitted",
            help="Whether to skip records of aborted and open transactions.",
        ),
    ] = None,
    key: Key = None,
    key_regex: KeyRegex = None,
    value_regex: ValueRegex = None,
    header: HeaderName = None,
    json_path: JsonPath = None,
    schema_registry: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar="KCTL_SCHEMA_REGISTRY",
            help="Schema registry to decode Avro, Protobuf and JSON Schema.",
        ),
    ] = None,
    schemas: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="Directory of ID.avsc, ID.proto, ID.json to decode by; or one schema for values.",
        ),
    ] = None,
    key_schema: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Schema for keys: FILE.avsc, FILE.json, FILE.proto:Message."
        ),
    ] = None,
    template: Annotated[
        str | None,
        typer.Option(
            "-f",
            "--format",
            metavar="TEMPLATE",
            help="%s value, %k key, %t topic, %p partition, %o offset, %T timestamp, %h headers, "
            "%e leader epoch, %S %K sizes, %% percent, \\n \\t \\r \\0 \\xNN.",
        ),
    ] = None,
    output: Annotated[
        str,
        typer.Option(
            "-o",
            "--output",
            metavar="FORMAT",
            help="text (by --format), table, wide, json, ndjson, yaml, csv, markdown, html or tsv.",
        ),
    ] = "text",
    raw: Annotated[
        bool,
        typer.Option("--raw", help="Do not escape control characters of text on a terminal."),
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "-X", metavar="KEY=VALUE", help="Client setting, such as fetch.max.bytes=1000."
        ),
    ] = None,
    bootstrap: Bootstrap = None,
    command_config: CommandConfig = None,
    context: Context = None,
    timeout: Timeout = TIMEOUT_S,
) -> int:
    """Print records of topics or partitions; runs until --until, -e, -n or Ctrl-C.

    With --group, --from applies to partitions without a committed offset.

    The default format is each value and a newline. Bytes that are not UTF-8 are base64 in json,
    ndjson, yaml and csv; `kctl produce --input ndjson` reads the output of -o ndjson.
    """
    from kctl.client_overrides import parse_client_overrides
    from kctl.commands.consume.consuming import ConsumeRequest, consume_records
    from kctl.commands.consume.settings import (
        CONSUMER_KEYS,
        GROUP_KEYS,
        commit_interval_ms,
        fetch_options,
        group_settings,
    )
    from kctl.content_filters import content_filters

    own_keys = CONSUMER_KEYS if group is None else (*CONSUMER_KEYS, *GROUP_KEYS)
    options = ClusterOptions(bootstrap, command_config, context, timeout)
    overrides = parse_client_overrides(settings or [], own_keys).above(
        settings_in_file(options, own_keys)
    )
    request = ConsumeRequest(
        selectors=selectors,
        start=start,
        until="end" if exit_at_end and until is None else until,
        max_messages=max_messages,
        fetch=fetch_options(overrides.own, read_committed=read_committed),
        template=template,
        output=output,
        is_raw=raw,
        schema_registry=schema_registry,
        schemas=schemas,
        key_schema=key_schema,
        filters=content_filters(key, key_regex, value_regex, header, json_path),
        group=None if group is None else group_settings(group, overrides.own),
        auto_commit_interval_ms=commit_interval_ms(overrides.own),
    )
    return consume_records(options._replace(overrides=overrides.shared), request)
