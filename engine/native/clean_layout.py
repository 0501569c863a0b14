"""The numbers that plain and compiled code of the cleaner exchange: slots, by their order.

The base offset, times and offsets are int64, all below 2^62; `latest_offset` is inclusive.
"""

from __future__ import annotations

#: In: what the batch and the map are; in and out: keys in the map; out: the last offset noted, and
#: how many records were gone over.
NOTE = (
    "base_offset", "start_offset", "slot_count", "size", "limit", "latest_offset", "records",
)  # fmt: skip
#: In: the batch, the map, and what decides on tombstones; out: what stays, and where the written
#: records end. `new_horizon_ms` is noted with the first tombstone that stays.
KEEP = (
    "base_offset", "latest_offset", "slot_count", "keeps_tombstones", "base_ms", "has_horizon",
    "horizon_ms", "new_horizon_ms", "count", "has_tombstone", "new_base_ms", "max_ms", "out_bytes",
)  # fmt: skip
#: Numbers of a record that stays: its start, the place behind its time, its end, its time delta.
SPAN = 4
#: The digest, and behind it room for the last two blocks of a key.
SCRATCH_TAIL = 16
SCRATCH_BYTES = SCRATCH_TAIL + 128
#: What a record may grow by when its time delta changes: a longer length, and a longer delta.
GROWTH_BYTES = 16
