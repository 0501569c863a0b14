"""The options of `kctl dump-log`, as Typer knows them: for its help, its completions, and every
call that `dump_log.py` does not read by itself.
"""

from __future__ import annotations

from typing import Annotated

import typer

from kctl.options.cluster import one_command
from kctl.options.filters import HeaderName, JsonPath, Key, KeyRegex, ValueRegex

app = one_command()


@app.command(add_help_option=False, epilog="Exit codes: 0 dumped, 1 failed or wrong usage,"
             " 4 problems found with --check.")  # fmt: skip
def dump_log(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH]...", help="Segment files, or partition directories read as one log."
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
        bool, typer.Option("--deep-iteration", help="Print records below their batch.")
    ] = False,
    skip_record_metadata: Annotated[
        bool, typer.Option("--skip-record-metadata", help="Leave only keys and values of records.")
    ] = False,
    max_bytes: Annotated[
        str,
        typer.Option(
            metavar="BYTES", help="Read only the first N bytes of each log.", show_default=False
        ),
    ] = "2147483647",
    max_message_size: Annotated[
        str, typer.Option(metavar="BYTES", help="Bytes looked at to check one index entry.")
    ] = "5242880",
    verify_index_only: Annotated[
        bool, typer.Option("--verify-index-only", help="Check indexes, print no entries.")
    ] = False,
    index_sanity_check: Annotated[
        bool, typer.Option("--index-sanity-check", help="Make a broker's start-up check only.")
    ] = False,
    key_decoder_class: Annotated[
        str | None,
        typer.Option(
            metavar="DECODER",
            help="Kafka's decoder class, or string, bytes, int, long, hex, json, schema-id.",
        ),
    ] = None,
    value_decoder_class: Annotated[
        str | None, typer.Option(metavar="DECODER", help="The same for values.")
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
        str, typer.Option(metavar="VERSION", help="Whose lines to print: 3.9 or 4.3.")
    ] = "3.9.1",
    from_offset: Annotated[int | None, typer.Option(metavar="OFFSET", help="First offset.")] = None,
    to_offset: Annotated[
        int | None, typer.Option(metavar="OFFSET", help="Offset to stop before.")
    ] = None,
    from_timestamp: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="First time: -1h, yesterday, ISO 8601 (UTC) or ms since 1970."
        ),
    ] = None,
    to_timestamp: Annotated[
        str | None, typer.Option(metavar="TIME", help="Time to stop before.")
    ] = None,
    max_records: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Records to show at most.")
    ] = None,
    key: Key = None,
    key_regex: KeyRegex = None,
    value_regex: ValueRegex = None,
    header: HeaderName = None,
    json_path: JsonPath = None,
    producer_id: Annotated[
        int | None, typer.Option(metavar="ID", help="Only this producer's batches.")
    ] = None,
    headers_only: Annotated[
        bool, typer.Option("--headers-only", help="Batches only, with their CRC check.")
    ] = False,
    output: Annotated[
        str,
        typer.Option(
            "-o", "--output", metavar="FORMAT", help="text (Kafka's lines), json, ndjson or csv."
        ),
    ] = "text",
    check: Annotated[
        bool, typer.Option("--check", help="Exit with 4 when the dump finds problems.")
    ] = False,
) -> int:
    """Print what is in log segments, indexes and snapshots.

    With the options of kafka-dump-log the output is the same to the byte, by default that of
    Kafka 3.9. Files are opened read-only; a log that a broker is writing can be dumped.
    """
    from kctl.commands.dump_log.plan import DumpPlan

    return DumpPlan(dict(locals())).execute()
