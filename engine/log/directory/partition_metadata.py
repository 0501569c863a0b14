"""`partition.metadata`: the id of the topic that a partition directory belongs to.

```
version: 0
topic_id: 8K4IcCorRNC2tJ_T-wo19A      22 characters of base64url; no newline after it
```

Source: Kafka's PartitionMetadataFile; KIP-516.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.errors import CorruptFile
from engine.host.ports import Files
from engine.ids import InvalidUuid, uuid_bytes
from engine.limits import CHECKPOINT_BYTES_MAX
from engine.log.directory.small_file import read_small_file

#: The file's name in a partition directory.
FILE_NAME = "partition.metadata"
#: The only existing version.
VERSION = 0

_ZERO_ID = bytes(16)


class PartitionMetadataFile(NamedTuple):
    """The topic id as text, as Kafka's tools show it."""

    topic_id: str
    version: int = VERSION


def parse_partition_metadata(content: bytes, path: str) -> PartitionMetadataFile:
    """Return the topic id in the content of a partition.metadata file; raises CorruptFile."""
    try:
        lines = content.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise CorruptFile(path, "UTF-8 text", "other bytes", position=error.start) from error
    properties = {}
    for line in lines:
        key, _, value = line.partition(":")
        properties[key.strip()] = value.strip()
    if properties.get("version") != str(VERSION):
        raise CorruptFile(path, f"version: {VERSION}", repr(properties.get("version"))[:100])
    topic_id = properties.get("topic_id")
    try:
        raw = uuid_bytes(topic_id or "")
    except InvalidUuid as error:
        raise CorruptFile(path, "a topic id of 22 characters", repr(topic_id)[:100]) from error
    if raw == _ZERO_ID:
        raise CorruptFile(path, "a topic id other than zero", topic_id)
    return PartitionMetadataFile(str(topic_id))


def encode_partition_metadata(metadata: PartitionMetadataFile) -> bytes:
    """Return the content of a partition.metadata file with this topic id."""
    return f"version: {metadata.version}\ntopic_id: {metadata.topic_id}".encode()


def read_partition_metadata(files: Files, path: str) -> PartitionMetadataFile:
    """Return the topic id in the partition.metadata file at `path`; raises CorruptFile."""
    return parse_partition_metadata(read_small_file(files, path, CHECKPOINT_BYTES_MAX), path)
