"""`bootstrap.checkpoint`: the first metadata of a KRaft cluster, which `kctl format` writes.

```
control batch   offset 0       SnapshotHeaderRecord
batch           offset 1 …     a FeatureLevelRecord for each feature: 01 0c 00, then the message
control batch   after it       SnapshotFooterRecord
```

The first elected controller imports it; its leader epoch is 0.

Source: BatchFileWriter, BootstrapDirectory of 3.9.1; files that 3.9.1 and 4.3.0 wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from engine.records.builder import BatchBuilder, BatchSettings
from engine.records.control import ControlType, build_control_batch
from engine.wire import messages
from engine.wire.codec import message_codec

FILE_NAME: Final = "bootstrap.checkpoint"
_VERSION: Final = 0
#: Version of the frame, the record's API key (12) and version.
_FRAME: Final = bytes((1, 12, _VERSION))
_LEADER_EPOCH: Final = 0
#: SnapshotHeaderRecord: version 0, last contained log timestamp 0 (none), no tagged fields.
_HEADER: Final = bytes(2 + 8 + 1)
_FOOTER: Final = bytes(2 + 1)


class FeatureLevel(NamedTuple):
    """A feature such as metadata.version, and its finalized level."""

    name: str
    level: int


def bootstrap_snapshot(levels: Sequence[FeatureLevel], timestamp_ms: int) -> bytes:
    """Return the content of a bootstrap.checkpoint with these feature levels, in this order.

    `kafka-storage format` writes this file, from which a KRaft controller takes its features.
    """
    builder = BatchBuilder(BatchSettings(base_offset=1, leader_epoch=_LEADER_EPOCH))
    codec = message_codec("FeatureLevelRecord", _VERSION)
    for feature in levels:
        record = messages.FeatureLevelRecord(name=feature.name, feature_level=feature.level)
        builder.append(timestamp_ms, None, _FRAME + codec.encode(record))
    return b"".join(
        (
            _control_batch(ControlType.SNAPSHOT_HEADER, _HEADER, timestamp_ms, 0),
            builder.build(),
            _control_batch(ControlType.SNAPSHOT_FOOTER, _FOOTER, timestamp_ms, 1 + len(levels)),
        )
    )


def _control_batch(kind: ControlType, value: bytes, timestamp_ms: int, offset: int) -> bytes:
    """Return the bytes of a batch with one control record of the snapshot."""
    batch = build_control_batch(
        kind, value, timestamp_ms=timestamp_ms, base_offset=offset, leader_epoch=_LEADER_EPOCH
    )
    return bytes(batch)
