"""Layout of the numbers that the cleaner and its compiled code exchange, as slots of an array.

The base offset, times and offsets are int64, all below 2^62; `latest_offset` is inclusive.
"""

from __future__ import annotations

#: Parameters: sizes and offsets of the batch and the map. Parameter and result: the number of keys
#: in the map. Results: the last offset put into the map, and the number of records looked at.
NOTE = (
    "base_offset", "start_offset", "slot_count", "size", "limit", "latest_offset", "records",
)  # fmt: skip
#: Parameters: the batch, the map, and the rules for tombstones. Results: which records stay, and
#: where the written records end. `new_horizon_ms` is used from the first tombstone that stays.
KEEP = (
    "base_offset", "latest_offset", "slot_count", "keeps_tombstones", "base_ms", "has_horizon",
    "horizon_ms", "new_horizon_ms", "count", "has_tombstone", "new_base_ms", "max_ms", "out_bytes",
)  # fmt: skip
#: Numbers of a record that stays: its start, the position after its time, its end, its time delta.
SPAN = 4
#: Size of the scratch memory: the digest, then room for the last two MD5 blocks of a key.
SCRATCH_TAIL = 16
SCRATCH_BYTES = SCRATCH_TAIL + 128
#: By how many bytes a record may grow when its time delta changes: length and delta get longer.
GROWTH_BYTES = 16
