"""The numbers that exchange hands about runs of batches: slots, by their order, all int64.

See `batch_runs.py`.
"""

from __future__ import annotations

#: Of one batch of a run. `start` and `size` are of the whole batch in its buffer, `position` is its
#: place in the file; the last two are for who fills rows: whether the batch is passed over, and how
#: many rows it gave.
FRAME = (
    "start", "size", "crc", "attributes", "last_delta", "base_offset", "base_ms", "max_ms",
    "producer_id", "producer_epoch", "base_sequence", "count", "position", "epoch", "is_passed",
    "rows",
)  # fmt: skip
#: In: the bytes that are there, where to begin, behind which place no batch may begin, the buffer's
#: place in the file, what the next batch must be of, how many may be found, whether control
#: batches are passed over. In and out: the offset that must come next. Out: how many were found,
#: where they end, whether one shows compaction, and how many records they have.
FIND = (
    "size", "at", "limit", "file_position", "epoch", "frames_max", "passes_control",
    "next_offset", "frame_count", "end", "is_compacted", "record_count",
)  # fmt: skip
#: What there is room for, and which records are wanted (all ends inclusive); in and out, where in
#: the batches and in the columns to go on, and what is so of the rows; the same of headers with a
#: batch that is not done; addresses of `memcpy` and of the columns.
FILL = (
    "frame", "frame_count", "size", "takes",
    "first_offset", "last_offset", "first_ms", "last_ms",
    "rows_max", "bytes_max", "headers_max",
    "rows", "key_bytes", "value_bytes", "headers", "name_bytes", "content_bytes",
    "key_nulls", "value_nulls", "content_nulls", "least_ms", "most_ms",
    "new_headers", "new_name_bytes", "new_content_bytes", "new_content_nulls",
    "memcpy", "offsets", "times", "key_sizes", "value_sizes", "schema_ids",
    "keys", "key_ends", "values", "value_ends",
    "header_ends", "names", "name_ends", "contents", "content_ends", "content_sizes",
)  # fmt: skip
#: What of records is taken, besides numbers.
KEYS, VALUES, SCHEMA_IDS, HEADERS = 1, 2, 4, 8
#: Why filling ended: no batch is left; no room for the next one; it is compressed; its records are
#: off the fast path.
DONE, FULL, COMPRESSED, ODD = 1, 2, 3, 4
#: The id of a value without a schema-registry envelope.
NO_SCHEMA_ID = -(1 << 40)
#: Behind what is said to be room for bytes: short fields are copied in steps of eight.
SLACK_BYTES = 16
