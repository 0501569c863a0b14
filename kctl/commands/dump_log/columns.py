"""Columns of `kctl dump-log -o json|ndjson|csv`, with the types of their values."""

from __future__ import annotations

from collections.abc import Sequence

from engine.dump.rows import BATCH_COLUMNS, INDEX_COLUMNS, RECORD_COLUMNS
from kctl.render import Column

_VALUE_COLUMNS = (
    Column("name", "NAME"),
    Column("value", "VALUE", kind="string?"),
    Column("value_encoding", "VALUE AS", kind="string?"),
    Column("value_base64", "VALUE BASE64", kind="string?"),
)
#: Types of columns that are not integers; null for fields that the segment's magic lacks.
_KINDS = {
    **dict.fromkeys(("file", "timestamp_type", "codec"), "string"),
    **dict.fromkeys(("key", "key_encoding", "key_base64"), "string?"),
    **dict.fromkeys(("value", "value_encoding", "value_base64"), "string?"),
    **dict.fromkeys(("topic", "control_type"), "string?"),
    **dict.fromkeys(("is_transactional", "is_control", "is_crc_valid"), "boolean"),
    **dict.fromkeys(("decoded_key", "decoded_value"), "any"),
    **dict.fromkeys(("partition", "sequence", "coordinator_epoch", "timestamp_ms"), "integer?"),
    **dict.fromkeys(("leader_epoch", "producer_epoch", "producer_id"), "integer?"),
    **dict.fromkeys(("record_count", "base_sequence", "last_sequence"), "integer?"),
    **dict.fromkeys(("base_timestamp_ms", "max_timestamp_ms", "delete_horizon_ms"), "integer?"),
    "headers": "object[]",
}


def dump_columns(names: Sequence[str]) -> tuple[Column, ...]:
    """Return columns of these names, in order, with the types of their values."""
    return tuple(
        Column(
            name,
            name,
            kind=_KINDS.get(name, "integer"),
            fields=_VALUE_COLUMNS if name == "headers" else (),
        )
        for name in names
    )


RECORDS = dump_columns(RECORD_COLUMNS)
BATCHES = dump_columns(BATCH_COLUMNS)
INDEXES, TIME_INDEXES, ABORTED_TRANSACTIONS, SNAPSHOTS = map(dump_columns, INDEX_COLUMNS.values())
