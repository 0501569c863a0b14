"""The columns of the views of files next to the logs: indexes, checkpoints, snapshots.

A row with a `problem` shows that a file, or this entry of it, is wrong. Its other columns have the
values in the file, null if they cannot be read.
"""

from __future__ import annotations

from engine.analysis.view_column import ViewColumn

_PROBLEM = ViewColumn("problem", "string", True, "what is wrong; null in a good row")

INDEXES = (
    ViewColumn("topic", "string", False, "from the folder's name"),
    ViewColumn("partition", "int", False, "from the folder's name"),
    ViewColumn("segment", "string", False, "path of the .log file"),
    ViewColumn("kind", "string", False, "offset or time"),
    ViewColumn("entry", "int", True, "number of the entry, from 0; null for the whole file"),
    ViewColumn("baseOffset", "long", False, "of the segment"),
    ViewColumn("relativeOffset", "int", True, "offset - base offset, as the file has it"),
    ViewColumn("indexedOffset", "long", True, "the offset that the entry is for"),
    ViewColumn("position", "int", True, "byte position in the .log; null in a time index"),
    ViewColumn("timestamp", "timestamp", True, "largest up to the offset; null in an offset index"),
    ViewColumn("timestampMs", "long", True, "the same exactly"),
    _PROBLEM,
)

CHECKPOINTS = (
    ViewColumn("dir", "string", False, "the log directory"),
    ViewColumn("topic", "string", False, "from the folder's name"),
    ViewColumn("partition", "int", False, "from the folder's name"),
    ViewColumn(
        "kind", "string", False, "highWatermark, recoveryPoint, logStartOffset or cleanerOffset"
    ),
    ViewColumn("checkpointOffset", "long", True, "what the file says of the partition"),
    _PROBLEM,
)

EPOCHS = (
    ViewColumn("dir", "string", False, "the log directory"),
    ViewColumn("topic", "string", False, "from the folder's name"),
    ViewColumn("partition", "int", False, "from the folder's name"),
    ViewColumn("leaderEpoch", "int", True, "the epoch"),
    ViewColumn("startOffset", "long", True, "its first offset"),
    ViewColumn("endOffset", "long", True, "start of the next epoch; null for the last one"),
    _PROBLEM,
)

PRODUCERS = (
    ViewColumn("topic", "string", False, "from the folder's name"),
    ViewColumn("partition", "int", False, "from the folder's name"),
    ViewColumn("snapshot", "string", False, "path of the .snapshot file"),
    ViewColumn("snapshotOffset", "long", False, "state up to this offset, exclusive"),
    ViewColumn("producerId", "long", True, ""),
    ViewColumn("producerEpoch", "int", True, ""),
    ViewColumn("firstSequence", "int", True, "of its last batch, -1 without one"),
    ViewColumn("lastSequence", "int", True, "of its last batch, -1 without one"),
    ViewColumn("lastOffset", "long", True, "of its last batch, -1 without one"),
    ViewColumn("timestamp", "timestamp", True, "of its last batch"),
    ViewColumn("timestampMs", "long", True, "the same exactly"),
    ViewColumn("coordinatorEpoch", "int", True, "of its last marker, -1 for none"),
    ViewColumn("transactionStart", "long", True, "first offset of its open transaction, or null"),
    _PROBLEM,
)
