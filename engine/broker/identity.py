"""The broker id in meta.properties of the log directories, read at the start of a broker.

Source: kafka.server.KafkaServer.getOrGenerateBrokerId; BrokerMetadataCheckpoint.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.errors import ConfigError, StorageError
from engine.host.ports import FileMissing, Files
from engine.log.directory.meta_properties import FILE_NAME, read_meta_properties

_GENERATED = -1


def known_broker_id(files: Files, data_dirs: Sequence[str], configured_id: int) -> int | None:
    """Return the broker id that is configured or in meta.properties; None if neither has one.

    None leads to a generated id. Unreadable log directories are ignored. Raises ConfigError if the
    ids contradict each other.
    """
    ids: set[int] = set()
    for path in data_dirs:
        try:
            meta = read_meta_properties(files, f"{path}/{FILE_NAME}")
        except FileMissing:
            continue
        except StorageError:
            # The log manager will take the directory offline, or report the error.
            continue
        if meta.node_id is not None:
            ids.add(meta.node_id)
    if configured_id != _GENERATED:
        ids.add(configured_id)
    if len(ids) > 1:
        named = ", ".join(str(broker_id) for broker_id in sorted(ids))
        raise ConfigError(
            "broker.id", configured_id, f"meta.properties and broker.id do not agree: {named}"
        )
    return ids.pop() if ids else None
