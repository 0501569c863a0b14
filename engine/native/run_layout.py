"""Layout of the numbers that are exchanged with the compiled code of `batch_runs.py`.

Each name is a slot in an array of int64, in this order.
"""

from __future__ import annotations

#: Numbers of one batch of a run. `start` and `size` are of the whole batch in its buffer,
#: `position` is its position in the file. The last two are for filling columns: whether the batch
#: is passed over, and how many rows it gave.
FRAME = (
    "start", "size", "crc", "attributes", "last_delta", "base_offset", "base_ms", "max_ms",
    "producer_id", "producer_epoch", "base_sequence", "count", "position", "epoch", "is_passed",
    "rows",
)  # fmt: skip
#: Parameters: the size of the buffer, where to start, the position before which batches must start,
#: the buffer's position in the file, the epoch of the batches, the largest number of batches,
#: whether control batches are passed over. Parameter and result: the next base offset. Results: the
#: number of batches, where they end, whether one shows compaction, and their number of records.
FIND = (
    "size", "at", "limit", "file_position", "epoch", "frames_max", "passes_control",
    "next_offset", "frame_count", "end", "is_compacted", "record_count",
)  # fmt: skip
#: Sizes of the columns, and which records are wanted (all ends inclusive). Parameters and results:
#: where to go on in the batches and in the columns, and flags of the rows; the same for headers,
#: which include those of an unfinished batch. Addresses of `memcpy` and of the columns.
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
#: Flags of the parts of a record to copy, besides its numbers.
KEYS, VALUES, SCHEMA_IDS, HEADERS = 1, 2, 4, 8
#: Why filling ended: no batch is left; no room for the next one; it is compressed; its records are
#: off the fast path.
DONE, FULL, COMPRESSED, ODD = 1, 2, 3, 4
#: The id of a value without a schema-registry envelope.
NO_SCHEMA_ID = -(1 << 40)
#: Extra bytes after each column of bytes: short fields are copied in steps of eight.
SLACK_BYTES = 16
