"""Typer options of `kctl dump-log`.

Used for its help, its completions, and every call that `app.py` does not parse itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

import typer

from kctl.options.cluster import one_command
from kctl.options.filters import HeaderName, JsonPath, Key, KeyRegex, ValueRegex

if TYPE_CHECKING:
    from kctl.commands.dump_log.given import GivenOptions

app = one_command()


@app.command(add_help_option=False, epilog="Exit codes: 0 dumped, 1 failed or wrong usage,"
             " 4 problems found with --check.")  # fmt: skip
def dump_log(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH]...",
            help="Segment files, or partition directories, each read as one log.",
        ),
    ] = None,
    files: Annotated[
        str | None,
        typer.Option(metavar="FILE,...", help="Comma-separated files, as for Kafka's tool."),
    ] = None,
    print_data_log: Annotated[
        bool, typer.Option("--print-data-log", help="Print keys and values; implies records.")
    ] = False,
    deep_iteration: Annotated[
        bool, typer.Option("--deep-iteration", help="Print the records of each batch.")
    ] = False,
    skip_record_metadata: Annotated[
        bool, typer.Option("--skip-record-metadata", help="Print only keys and values of records.")
    ] = False,
    max_bytes: Annotated[
        str,
        typer.Option(
            metavar="BYTES", help="Read only the first N bytes of each log.", show_default=False
        ),
    ] = "2147483647",
    max_message_size: Annotated[
        str,
        typer.Option(metavar="BYTES", help="Maximum bytes to read when checking an index entry."),
    ] = "5242880",
    verify_index_only: Annotated[
        bool, typer.Option("--verify-index-only", help="Check indexes without printing entries.")
    ] = False,
    index_sanity_check: Annotated[
        bool,
        typer.Option("--index-sanity-check", help="Run only the index check of a broker's start."),
    ] = False,
    key_decoder_class: Annotated[
        str | None,
        typer.Option(
            metavar="DECODER",
            help="Kafka's decoder class, or string, bytes, int, long, hex, json, schema-id.",
        ),
    ] = None,
    value_decoder_class: Annotated[
        str | None, typer.Option(metavar="DECODER", help="Like --key-decoder-class, for values.")
    ] = None,
    offsets_decoder: Annotated[
        bool, typer.Option("--offsets-decoder", help="Decode __consumer_offsets.")
    ] = False,
    transaction_log_decoder: Annotated[
        bool, typer.Option("--transaction-log-decoder", help="Decode __transaction_state.")
    ] = False,
    cluster_metadata_decoder: Annotated[
        bool, typer.Option("--cluster-metadata-decoder", help="Decode __cluster_metadata.")
    ] = False,
    remote_log_metadata_decoder: Annotated[
        bool, typer.Option("--remote-log-metadata-decoder", help="Decode __remote_log_metadata.")
    ] = False,
    share_group_state_decoder: Annotated[
        bool,
        typer.Option(
            "--share-group-state-decoder",
            help="Decode __share_group_state (with --kafka-version 4.3).",
        ),
    ] = False,
    kafka_version: Annotated[
        str,
        typer.Option(metavar="VERSION", help="Kafka release whose output to print: 3.9 or 4.3."),
    ] = "3.9.1",
    from_offset: Annotated[int | None, typer.Option(metavar="OFFSET", help="First offset.")] = None,
    to_offset: Annotated[
        int | None, typer.Option(metavar="OFFSET", help="End offset, exclusive.")
    ] = None,
    from_timestamp: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="First time: -1h, yesterday, ISO 8601 (UTC) or ms since 1970."
        ),
    ] = None,
    to_timestamp: Annotated[
        str | None, typer.Option(metavar="TIME", help="End time, exclusive.")
    ] = None,
    max_records: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Maximum number of records.")
    ] = None,
    key: Key = None,
    key_regex: KeyRegex = None,
    value_regex: ValueRegex = None,
    header: HeaderName = None,
    json_path: JsonPath = None,
    producer_id: Annotated[
        int | None, typer.Option(metavar="ID", help="Show only this producer's batches.")
    ] = None,
    headers_only: Annotated[
        bool, typer.Option("--headers-only", help="Show batches only, and check their CRC.")
    ] = False,
    output: Annotated[
        str,
        typer.Option(
            "-o", "--output", metavar="FORMAT", help="text (Kafka's lines), json, ndjson or csv."
        ),
    ] = "text",
    check: Annotated[
        bool, typer.Option("--check", help="Exit code 4 if the dump finds problems.")
    ] = False,
) -> int:
    """Print the contents of log segments, indexes and snapshots.

    With options of kafka-dump-log the output has the same bytes as Kafka's tool, by default of
    release 3.9. Files are opened read-only; a log that a broker is writing can be dumped.
    """
    from kctl.commands.dump_log.plan import DumpPlan

    return DumpPlan(cast("GivenOptions", dict(locals()))).execute()
