"""`meta.properties`: the cluster, broker and id that a log directory belongs to.

```
version=0                 ZooKeeper mode          version=1                 KRaft
broker.id=1               may be absent           node.id=2
cluster.id=2Qe4I_4CSUac…  may be absent           cluster.id=pnv6gxaodQEK…
directory.id=yahQP2WjtO…  may be absent           directory.id=yahQP2WjtO…  may be absent
```

Source: Kafka's MetaProperties and MetaPropertiesEnsemble.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from engine.config.java_properties import encode_properties, parse_properties
from engine.errors import CorruptFile
from engine.host.ports import Files
from engine.ids import InvalidUuid, uuid_bytes
from engine.limits import CHECKPOINT_BYTES_MAX
from engine.log.directory.small_file import read_small_file

#: The file's name in a log directory.
FILE_NAME = "meta.properties"

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


class MetaProperties(NamedTuple):
    """The identity of a log directory; `node_id` is broker.id in version 0."""

    version: int
    cluster_id: str | None
    node_id: int | None
    directory_id: str | None = None


def parse_meta_properties(content: bytes, path: str) -> MetaProperties:
    """Return the identity in the content of a meta.properties file; raises CorruptFile."""
    properties = parse_properties(content, path)
    version = _parse_number(properties, "version", path) if "version" in properties else 0
    if version not in (0, 1):
        raise CorruptFile(path, "version 0 or 1", version)
    id_key = "node.id" if version else "broker.id"
    if version:
        for key in ("node.id", "cluster.id"):
            if key not in properties:
                raise CorruptFile(path, f"the key {key}", "no such key")
    directory_id = properties.get("directory.id")
    if directory_id is not None:
        try:
            uuid_bytes(directory_id)
        except InvalidUuid as error:
            raise CorruptFile(path, "an id of 22 characters", repr(directory_id)) from error
    node_id = _parse_number(properties, id_key, path) if id_key in properties else None
    return MetaProperties(version, properties.get("cluster.id"), node_id, directory_id)


def encode_meta_properties(meta: MetaProperties, written_ms: int) -> bytes:
    """Return the content of a meta.properties file, with the date comment that Java writes.

    `written_ms` is the wall time of that comment, which is shown in UTC.
    """
    entries = {"version": str(meta.version)}
    if meta.cluster_id is not None:
        entries["cluster.id"] = meta.cluster_id
    if meta.node_id is not None:
        entries["node.id" if meta.version else "broker.id"] = str(meta.node_id)
    if meta.directory_id is not None:
        entries["directory.id"] = meta.directory_id
    return encode_properties(entries, ("", _format_java_date(written_ms)))


def read_meta_properties(files: Files, path: str) -> MetaProperties:
    """Return the identity in the meta.properties file at `path`; raises CorruptFile."""
    return parse_meta_properties(read_small_file(files, path, CHECKPOINT_BYTES_MAX), path)


def _parse_number(properties: dict[str, str], key: str, path: str) -> int:
    """Return the number of a key that the file has; raise CorruptFile for other text."""
    text = properties[key].strip()
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 10):
        raise CorruptFile(path, f"a number for {key}", repr(text[:100]))
    return int(text)


def _format_java_date(written_ms: int) -> str:
    """Return a time as java.util.Date prints it, in English: strftime would follow the locale."""
    now = time.gmtime(written_ms // 1000)
    clock = f"{now.tm_hour:02d}:{now.tm_min:02d}:{now.tm_sec:02d}"
    day = f"{_DAYS[now.tm_wday]} {_MONTHS[now.tm_mon - 1]} {now.tm_mday:02d}"
    return f"{day} {clock} UTC {now.tm_year}"
