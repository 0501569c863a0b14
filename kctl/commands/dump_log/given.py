"""The options of `kctl dump-log` as their parsers give them to `DumpPlan`, for type checkers."""

from __future__ import annotations

from typing import TypedDict


class GivenOptions(TypedDict):
    """A value for each option and for the arguments (`paths`); None if an option is not given."""

    paths: list[str] | None
    print_data_log: bool
    deep_iteration: bool
    skip_record_metadata: bool
    verify_index_only: bool
    index_sanity_check: bool
    offsets_decoder: bool
    transaction_log_decoder: bool
    cluster_metadata_decoder: bool
    remote_log_metadata_decoder: bool
    share_group_state_decoder: bool
    headers_only: bool
    check: bool
    files: str | None
    max_bytes: str
    max_message_size: str
    key_decoder_class: str | None
    value_decoder_class: str | None
    kafka_version: str
    from_timestamp: str | None
    to_timestamp: str | None
    key: str | None
    key_regex: str | None
    value_regex: str | None
    header: str | None
    output: str
    from_offset: int | None
    to_offset: int | None
    max_records: int | None
    producer_id: int | None
    json_path: list[str] | None
