"""The columns of all views: the only definition of their schemas.

`records` starts with the columns of Spark's own Kafka source, so that a job written for a broker
runs on files. A type is a word that `column_types.py` translates.

A record's time may be any int64. A column of type timestamp has the times of the years 1 to 9999
and is null for other times; next to each is a column in ms that has every time exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.analysis.column_types import arrow_type, spark_type
from engine.analysis.decoded_columns import GROUPS, METADATA, OFFSETS, TRANSACTIONS
from engine.analysis.side_columns import CHECKPOINTS, EPOCHS, INDEXES, PRODUCERS
from engine.analysis.view_column import ViewColumn
from engine.errors import EngineError

if TYPE_CHECKING:
    import pyarrow as pa


RECORDS = (
    ViewColumn("key", "binary", True, "the key, null where the record has none"),
    ViewColumn("value", "binary", True, "the value, null for a tombstone"),
    ViewColumn("topic", "string", False, "from the folder's name"),
    ViewColumn("partition", "int", False, "from the folder's name"),
    ViewColumn("offset", "long", False, "the record's offset"),
    ViewColumn("timestamp", "timestamp", True, "UTC; 1 ms before 1970 where there is none"),
    ViewColumn("timestampType", "int", False, "0 create, 1 append, -1 none"),
    ViewColumn("headers", "headers", True, "list of (key, value), null where there are none"),
    ViewColumn("baseOffset", "long", False, "the batch's first offset"),
    ViewColumn("leaderEpoch", "int", False, "of the batch, -1 in old formats"),
    ViewColumn("producerId", "long", False, "of the batch, -1 for none"),
    ViewColumn("producerEpoch", "int", False, "of the batch, -1 for none"),
    ViewColumn("sequence", "int", False, "-1 without a producer"),
    ViewColumn("isTransactional", "boolean", False, "of the batch"),
    ViewColumn("isControl", "boolean", False, "a marker, not data"),
    ViewColumn("codec", "string", False, "none, gzip, snappy, lz4 or zstd"),
    ViewColumn("batchPosition", "long", False, "the batch's byte position in the segment"),
    ViewColumn("segment", "string", False, "path of the .log file"),
    ViewColumn("key_size", "int", False, "bytes, -1 for null"),
    ViewColumn("value_size", "int", False, "bytes, -1 for null"),
    ViewColumn("value_hash", "long", True, "CRC-32C of the value, null for null"),
    ViewColumn("is_tombstone", "boolean", False, "a key without a value"),
    ViewColumn("schema_id", "int", True, "of a schema-registry envelope, null for none"),
    ViewColumn("timestampMs", "long", False, "the record's time exactly, -1 for none"),
)

BATCHES = (
    ViewColumn("topic", "string", False, "from the folder's name"),
    ViewColumn("partition", "int", False, "from the folder's name"),
    ViewColumn("segment", "string", False, "path of the .log file"),
    ViewColumn("position", "long", False, "byte position in the segment"),
    ViewColumn("baseOffset", "long", False, "first offset; of a wrapper, its last"),
    ViewColumn("lastOffset", "long", False, "last offset, inclusive"),
    ViewColumn("count", "int", True, "records; null in old formats, which do not store it"),
    ViewColumn("size", "int", False, "bytes on disk"),
    ViewColumn("codec", "string", False, "none, gzip, snappy, lz4, zstd or unknown"),
    ViewColumn("magic", "int", False, "0, 1 or 2"),
    ViewColumn("crc", "long", False, "the stored checksum"),
    ViewColumn("crcValid", "boolean", False, "whether it is that of the bytes"),
    ViewColumn("leaderEpoch", "int", False, "-1 in old formats"),
    ViewColumn("producerId", "long", False, "-1 for none"),
    ViewColumn("producerEpoch", "int", False, "-1 for none"),
    ViewColumn("baseSequence", "int", False, "-1 for none"),
    ViewColumn("isTransactional", "boolean", False, ""),
    ViewColumn("isControl", "boolean", False, "holds a marker"),
    ViewColumn("timestampType", "int", False, "0 create, 1 append, -1 none"),
    ViewColumn("maxTimestamp", "timestamp", True, "largest of its records"),
    ViewColumn("deleteHorizonMs", "long", True, "set by compaction"),
    ViewColumn("maxTimestampMs", "long", False, "the same exactly"),
    ViewColumn("rawSize", "int", True, "without compression; null if it was not opened"),
    ViewColumn("gzipSize", "int", True, "compressed by gzip; of large logs one batch in 16"),
    ViewColumn("snappySize", "int", True, "the same by snappy"),
    ViewColumn("lz4Size", "int", True, "the same by lz4"),
    ViewColumn("zstdSize", "int", True, "the same by zstd"),
)

_OF_REPLICAS = (
    "topic", "partition", "segment", "position", "baseOffset", "lastOffset", "count", "size", "crc",
    "crcValid", "leaderEpoch", "isControl",
)  # fmt: skip

SEGMENTS = (
    ViewColumn("dir", "string", False, "the log directory"),
    ViewColumn("topic", "string", False, "from the folder's name"),
    ViewColumn("partition", "int", False, "from the folder's name"),
    ViewColumn("segment", "string", False, "path of the .log file"),
    ViewColumn("baseOffset", "long", False, "from the file's name"),
    ViewColumn("nextOffset", "long", False, "the offset after its last batch"),
    ViewColumn("bytes", "long", False, "of the .log"),
    ViewColumn("batches", "long", False, "whole batches in it"),
    ViewColumn("indexEntries", "int", True, "null without an index"),
    ViewColumn("timeIndexEntries", "int", True, "null without a time index"),
    ViewColumn("txnIndexEntries", "int", True, "null without a transaction index"),
    ViewColumn("firstTimestamp", "timestamp", True, "largest of its first batch"),
    ViewColumn("lastTimestamp", "timestamp", True, "largest of all"),
    ViewColumn("firstTimestampMs", "long", True, "firstTimestamp exactly"),
    ViewColumn("lastTimestampMs", "long", True, "lastTimestamp exactly"),
    ViewColumn("rolledBy", "string", True, "the rule that closed it, null while it is written to"),
)

REPLICAS = (
    ViewColumn("dir", "string", False, "the log directory"),
    ViewColumn("brokerId", "int", True, "from its meta.properties"),
    ViewColumn("isRead", "boolean", False, "whether other views read this replica"),
    *(column for column in BATCHES if column.name in _OF_REPLICAS),
)

PROBLEM_CODES = (
    "bad_crc", "bad_batch", "bad_offset", "bad_records", "bad_epoch", "lost", "gap", "overlap",
    "short", "torn_tail", "undecided", "diverged", "replica",
)  # fmt: skip

PROBLEMS = (
    ViewColumn("topic", "string", False, "from the folder's name"),
    ViewColumn("partition", "int", False, "from the folder's name"),
    ViewColumn("segment", "string", False, "path of the .log file"),
    ViewColumn("position", "long", False, "where the damage starts"),
    ViewColumn("bytes", "long", False, "how many bytes were passed over"),
    ViewColumn("code", "string", False, ", ".join(PROBLEM_CODES)),
    ViewColumn("message", "string", False, "what was expected and what was there"),
)

VIEWS = {
    "records": RECORDS,
    "batches": BATCHES,
    "segments": SEGMENTS,
    "replicas": REPLICAS,
    "indexes": INDEXES,
    "checkpoints": CHECKPOINTS,
    "epochs": EPOCHS,
    "producers": PRODUCERS,
    "offsets": OFFSETS,
    "groups": GROUPS,
    "transactions": TRANSACTIONS,
    "metadata": METADATA,
}
#: The column that is read to count rows if a query uses no column of the view.
CHEAPEST = {
    "records": "partition", "batches": "position", "segments": "baseOffset",
    "replicas": "position", "indexes": "baseOffset",
    "checkpoints": "partition", "epochs": "partition", "producers": "partition",
    "offsets": "logPartition", "groups": "logPartition", "transactions": "logPartition",
    "metadata": "position",
}  # fmt: skip


class UnknownColumn(EngineError):
    """The view lacks a requested column."""

    exit_code = 2

    def __init__(self, name: str, columns: tuple[ViewColumn, ...]) -> None:
        super().__init__(f"no column {name!r}: {', '.join(c.name for c in columns)}")
        self.name = name


def choose_columns(
    columns: tuple[ViewColumn, ...], names: list[str] | None
) -> tuple[ViewColumn, ...]:
    """Return the columns of a view with these names, in the view's order; all for None.

    Names are compared case-insensitively, as in SQL. Raises UnknownColumn.
    """
    if names is None:
        return columns
    wanted = {name.lower() for name in names}
    for name in names:
        if name.lower() not in {column.name.lower() for column in columns}:
            raise UnknownColumn(name, columns)
    return tuple(column for column in columns if column.name.lower() in wanted)


def arrow_schema(columns: tuple[ViewColumn, ...], zone: str | None = "UTC") -> pa.Schema:
    """Return the columns of a view as a pyarrow schema.

    Timestamps have the time zone `zone`, with None no time zone.
    """
    import pyarrow as pa

    return pa.schema([pa.field(c.name, arrow_type(c.type, zone), c.nullable) for c in columns])


def spark_schema(columns: tuple[ViewColumn, ...]) -> str:
    """Return the columns of a view as Spark's schema text, with documentation as comments."""
    return ", ".join(
        f"`{c.name}` {spark_type(c.type)}{'' if c.nullable else ' NOT NULL'}"
        f" COMMENT {_sql_literal(c.doc)}"
        for c in columns
    )


def _sql_literal(text: str) -> str:
    """Return a text as a string literal of Spark SQL."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
