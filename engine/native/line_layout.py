"""Layout of the memory shared with the compiled code that writes the lines of records.

Both sides read it: `line_kernel.py`, which is compiled, and its caller,
`engine.dump.compiled_lines`.
"""

from __future__ import annotations

#: Slots of the numbers that go to and come from the compiled code.
SLOTS = (
    "raw_start", "raw_end", "base_offset", "base_ms", "append_ms", "base_sequence",
    "record_count", "level", "last_offset", "check_first_gap", "out_end", "gap_count",
    "batch_count", "base_position", "out_room", "gap_room", "batches_done",
)  # fmt: skip

#: Words of a line, as they follow each other in one buffer.
WORDS = (
    b"| offset: ", b" CreateTime: ", b" LogAppendTime: ", b" keySize: ", b" valueSize: ",
    b" sequence: ", b" headerKeys: [", b"]", b" key: ", b" payload: ",
    b"baseOffset: ", b" lastOffset: ", b" count: ", b" baseSequence: ", b" lastSequence: ",
    b" producerId: ", b" producerEpoch: ", b" partitionLeaderEpoch: ", b" isTransactional: ",
    b" isControl: ", b" deleteHorizonMs: OptionalLong", b".empty", b"[", b" position: ",
    b" size: ", b" magic: 2 compresscodec: ", b" crc: ", b" isvalid: ", b"true", b"false",
    b"none", b"gzip", b"snappy", b"lz4", b"zstd",
)  # fmt: skip
