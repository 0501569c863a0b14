"""The four checkpoints of a log directory: one offset for each partition.

```
recovery-point-offset-checkpoint   all records below it are flushed
replication-offset-checkpoint      high watermark
log-start-offset-checkpoint        log start offset, if above the first segment's base offset
cleaner-offset-checkpoint          first dirty offset of a compacted log

0              version
2              number of entries
orders 0 260   topic, partition, offset
orders 1 17
```

Source: Kafka's OffsetCheckpointFile.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.errors import CorruptFile
from engine.host.ports import Files
from engine.log.directory.text_checkpoint import (
    encode_text_checkpoint,
    parse_integer,
    parse_text_checkpoint,
    read_text_checkpoint,
)
from engine.model import TopicPartition

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
CLEANER_POINTS = "cleaner-offset-checkpoint"

#: The names of all four checkpoint files.
FILE_NAMES = (RECOVERY_POINTS, HIGH_WATERMARKS, LOG_STARTS, CLEANER_POINTS)


def parse_offsets(content: bytes, path: str) -> dict[TopicPartition, int]:
    """Return the offset of each partition, in the file's order; raises CorruptFile.

    Of two lines for one partition the last counts.
    """
    offsets = {}
    for topic, partition, offset in parse_text_checkpoint(content, path, fields=3):
        key = TopicPartition(topic, parse_integer(partition, path, "a partition"))
        offsets[key] = parse_integer(offset, path, "an offset")
        if key.partition < 0:
            raise CorruptFile(path, "a partition of at least 0", key.partition)
    return offsets


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """Return the content of a checkpoint file of offsets, in the mapping's order."""
    return encode_text_checkpoint((*key, offset) for key, offset in offsets.items())


def read_offsets(files: Files, path: str) -> dict[TopicPartition, int]:
    """Return the offset of each partition in the checkpoint file at `path`; raises CorruptFile."""
    return parse_offsets(read_text_checkpoint(files, path), path)
