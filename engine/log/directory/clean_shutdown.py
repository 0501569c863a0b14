"""`.kafka_cleanshutdown`: marker that the last stop was clean, so that no log needs recovery.

```
{"version":0,"brokerEpoch":-1}      −1 in ZooKeeper mode; older releases left the file empty
```

The existence of the file is the marker; its content only adds the broker's epoch.

Source: Kafka's CleanShutdownFileHandler; KIP-966.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from engine.errors import CorruptFile
from engine.host.ports import Files
from engine.limits import CHECKPOINT_BYTES_MAX
from engine.log.directory.small_file import read_small_file

#: The file's name in a log directory.
FILE_NAME = ".kafka_cleanshutdown"
#: The only existing version.
VERSION = 0
#: Value of `brokerEpoch` without a broker epoch.
NO_BROKER_EPOCH = -1


class CleanShutdown(NamedTuple):
    """The marker's content."""

    broker_epoch: int = NO_BROKER_EPOCH
    version: int = VERSION


def parse_clean_shutdown(content: bytes, path: str) -> CleanShutdown:
    """Return the content of a `.kafka_cleanshutdown` file; raises CorruptFile.

    An empty file, as older brokers write it, has NO_BROKER_EPOCH.
    """
    if not content:
        return CleanShutdown()
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise CorruptFile(path, "a JSON object", repr(bytes(content[:100]))) from error
    if not isinstance(document, dict):
        raise CorruptFile(path, "a JSON object", type(document).__name__)
    version, epoch = document.get("version"), document.get("brokerEpoch")
    if type(version) is not int or version != VERSION:
        raise CorruptFile(path, f"version {VERSION}", repr(version)[:100])
    if type(epoch) is not int:
        raise CorruptFile(path, "a number for brokerEpoch", repr(epoch)[:100])
    return CleanShutdown(epoch)


def encode_clean_shutdown(marker: CleanShutdown) -> bytes:
    """Return the content of a `.kafka_cleanshutdown` file, as one JSON object."""
    return f'{{"version":{marker.version},"brokerEpoch":{marker.broker_epoch}}}'.encode()


def read_clean_shutdown(files: Files, path: str) -> CleanShutdown:
    """Return the content of the `.kafka_cleanshutdown` file at `path`; raises CorruptFile."""
    return parse_clean_shutdown(read_small_file(files, path, CHECKPOINT_BYTES_MAX), path)
