"""Format log directories like `kafka-storage format`.

Each directory gets `bootstrap.checkpoint`, then `meta.properties`, which marks it as formatted: a
crash between the two leaves a directory that the same call formats again.

Source: Formatter, MetaPropertiesEnsemble.verify of 3.9.1 and 4.3.0.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from engine.client.feature_levels import METADATA, metadata_name
from engine.controller.topic_ids import random_topic_id
from engine.errors import StorageError
from engine.hash_order import in_java_hash_order
from engine.host.ports import Clock, Entropy, Files
from engine.ids import uuid_text
from engine.log.directory.bootstrap_snapshot import (
    FILE_NAME,
    FeatureLevel,
    bootstrap_snapshot,
)
from engine.log.directory.meta_properties import MetaProperties, encode_meta_properties
from kctl.compat.java_failures import TerseFailure, ToolFailure
from kctl.compat.storage_dirs import (
    MetadataRefused,
    NodeSettings,
    StoredMetadata,
    metadata_path,
    read_stored_metadata,
)

_RUNTIME = "java.lang.RuntimeException"


class Host(NamedTuple):
    """The ports for formatting: files, clock and randomness."""

    files: Files
    clock: Clock
    entropy: Entropy


class DirectoryStates(NamedTuple):
    """Directories by their state, each group in the order of Java's sets."""

    formatted: dict[str, StoredMetadata]
    empty: Sequence[str]
    unreadable: Sequence[str]


def read_directory_states(files: Files, settings: NodeSettings) -> DirectoryStates:
    """Return which of a node's directories are formatted, empty or unreadable, in Java's order."""
    formatted: dict[str, StoredMetadata] = {}
    empty: list[str] = []
    unreadable: list[str] = []
    for directory in in_java_hash_order(settings.directories):
        if _is_or_is_below_a_file(files, directory):
            unreadable.append(directory)
            continue
        try:
            metadata = read_stored_metadata(files, directory)
        except (MetadataRefused, StorageError):
            unreadable.append(directory)
            continue
        if metadata is None:
            empty.append(directory)
        else:
            formatted[directory] = metadata
    return DirectoryStates(formatted, empty, unreadable)


def _is_or_is_below_a_file(files: Files, directory: str) -> bool:
    """Return True if a path cannot become a directory: it, or a parent, is a file."""
    path = directory
    while not files.exists(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    return files.exists(path) and not files.is_dir(path)


def verify_formatted(states: DirectoryStates, cluster_id: str, node_id: str) -> None:
    """Raise ToolFailure if a formatted directory belongs to another cluster or node.

    kafka-storage format calls it before it writes anything.
    """
    for directory, metadata in sorted(states.formatted.items()):
        path, fields = metadata_path(directory), metadata.fields
        found = fields.get("cluster.id")
        if found is not None and found != cluster_id:
            raise ToolFailure(
                _RUNTIME, f"Invalid cluster.id in: {path}. Expected {cluster_id}, but read {found}"
            )
        stored = fields.get("node.id", fields.get("broker.id"))
        if stored is not None and int(stored) != int(node_id):
            raise ToolFailure(
                _RUNTIME,
                f"Stored node id {int(stored)} doesn't match previous node id {int(node_id)} in "
                f"{path}. If you moved your data, make sure your configured node id matches. If "
                "you intend to create a new node, you should remove all data in your data "
                "directories.",
            )


def directories_to_format(states: DirectoryStates, *, ignores_formatted: bool) -> Sequence[str]:
    """Return the directories to format; raises TerseFailure if one is already formatted.

    With `ignores_formatted` formatted directories are left out instead.
    """
    if states.formatted and not ignores_formatted:
        first = next(iter(states.formatted))
        raise TerseFailure(
            f"Log directory {first} is already formatted. Use --ignore-formatted to ignore this "
            "directory and format the others."
        )
    return states.empty


def bootstrap_text(levels: Sequence[FeatureLevel]) -> str:
    """Return the bootstrap metadata, the initial feature levels, as Java prints it."""
    rows = (f"FeatureLevelRecord(name='{name}', featureLevel={level})" for name, level in levels)
    records = ", ".join(f"ApiMessageAndVersion({row} at version 0)" for row in rows)
    return (
        f"Bootstrap metadata: BootstrapMetadata(records=[{records}], "
        f"metadataVersionLevel={metadata_level(levels)}, source=format command)"
    )


def metadata_level(levels: Sequence[FeatureLevel]) -> int:
    """Return the level of metadata.version among `levels`."""
    return next(level for name, level in levels if name == METADATA)


def format_directory(
    host: Host, directory: str, cluster_id: str, node_id: str, levels: Sequence[FeatureLevel]
) -> None:
    """Format a directory for KRaft: write its bootstrap.checkpoint and meta.properties.

    Errors: those of files.
    """
    host.files.make_dir(directory)
    now_ms = host.clock.wall_ms()
    host.files.replace_file(f"{directory}/{FILE_NAME}", bootstrap_snapshot(levels, now_ms))
    directory_id = uuid_text(random_topic_id(host.entropy))
    meta = MetaProperties(1, cluster_id, int(node_id), directory_id)
    host.files.replace_file(metadata_path(directory), encode_meta_properties(meta, now_ms))


def formatting_line(directory: str, settings: NodeSettings, levels: Sequence[FeatureLevel]) -> str:
    """Return the line that kafka-storage prints before it formats a directory."""
    kind = "metadata" if directory == settings.metadata_directory else "data"
    name = metadata_name(metadata_level(levels))
    return f"Formatting {kind} directory {directory} with {METADATA} {name}."
