"""The log directories of a node, as `kafka-storage` reads them.

Source: MetaProperties, MetaPropertiesEnsemble, StorageTool.infoCommand of 3.9.1 and 4.3.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from engine.config.java_properties import parse_properties
from engine.errors import EngineError, StorageError
from engine.host.ports import Files
from engine.log.directory.meta_properties import FILE_NAME
from kctl.compat.java_failures import ToolFailure
from kctl.compat.java_numbers import is_java_number
from kctl.compat.java_uuids import java_uuid

_DEFAULT_DIRECTORY: Final = "/tmp/kafka-logs"
_CONFIG: Final = "org.apache.kafka.common.config.ConfigException"
_NO_NODE_ID: Final = (
    "Missing configuration `node.id` which is required when `process.roles` is defined (i.e. when "
    "running in KRaft mode)."
)
_KEYS: Final = ("broker.id", "cluster.id", "directory.id", "node.id")


class NodeSettings(NamedTuple):
    """A node's storage settings; `directories` includes `metadata_directory` in KRaft mode."""

    is_kraft: bool
    directories: tuple[str, ...]
    metadata_directory: str
    node_id: str | None


class MetadataRefused(EngineError):
    """A `meta.properties` is invalid; the message is Java's."""


class StoredMetadata(NamedTuple):
    """The fields of a `meta.properties` under Kafka's names."""

    version: int
    fields: Mapping[str, str]

    @property
    def shown(self) -> str:
        """Return the fields of meta.properties as Java prints them."""
        rows = sorted({**self.fields, "version": str(self.version)}.items())
        return f"{{{', '.join(f'{key}={text}' for key, text in rows)}}}"


def parse_node_settings(properties: Mapping[str, str], *, is_four: bool) -> NodeSettings:
    """Return what kafka-storage reads of a server.properties file: mode, node id, directories.

    Errors: ToolFailure if they are invalid.
    """
    is_kraft = bool(properties.get("process.roles", "").strip())
    if is_four and not is_kraft:
        raise _missing("process.roles")
    node_id = _parse_node_id(properties, is_kraft=is_kraft, is_four=is_four)
    directories = _parse_directories(properties, is_four=is_four)
    of_metadata = properties.get("metadata.log.dir", "").strip() or directories[0]
    every = tuple(dict.fromkeys((*directories, of_metadata) if is_kraft else directories))
    return NodeSettings(is_kraft, every, of_metadata, node_id)


def _parse_node_id(properties: Mapping[str, str], *, is_kraft: bool, is_four: bool) -> str | None:
    """Return node.id or broker.id, None if a ZooKeeper broker is to generate it.

    Errors: ToolFailure if it is malformed, or both differ.
    """
    of_broker, of_node = properties.get("broker.id"), properties.get("node.id")
    given = {"broker.id": of_node if of_broker is None else of_broker, "node.id": of_node}
    numbers = {}
    for name, text in given.items():
        if text is None:
            continue
        if not is_java_number(text.strip(), 32):
            cause = f"Invalid value {text} for configuration {name}: Not a number of type INT"
            raise ToolFailure(_CONFIG, cause)
        numbers[name] = int(text)
    if not numbers and is_kraft and is_four:
        raise _missing("node.id")
    number = numbers.get("broker.id", -1)
    if is_kraft and number < 0:
        low = f"Invalid value {number} for configuration node.id: Value must be at least 0"
        raise ToolFailure(_CONFIG, low if is_four else _NO_NODE_ID)
    if numbers.get("node.id", number) != number:
        raise ToolFailure(_CONFIG, "You must set `node.id` to the same value as `broker.id`.")
    return str(number) if numbers else None


def _parse_directories(properties: Mapping[str, str], *, is_four: bool) -> list[str]:
    """Return the configured log directories in order; raises ToolFailure if there is none."""
    name = next((name for name in ("log.dirs", "log.dir") if name in properties), None)
    text = _DEFAULT_DIRECTORY if name is None else properties[name].strip()
    paths = [one.strip() for one in text.split(",")] if text else []
    if is_four and not paths:
        empty = f"Configuration '{name}' must not be empty. Valid values include: any non-empty"
        raise ToolFailure(_CONFIG, f"{empty} value")
    if is_four and not all(paths):
        raise ToolFailure(_CONFIG, f"Configuration '{name}' values must not be empty.")
    directories = [path for path in paths if path]
    if not directories:
        raise ToolFailure(
            "java.lang.IllegalArgumentException",
            "requirement failed: At least one log directory must be defined via log.dirs or "
            "log.dir.",
        )
    return directories


def _missing(name: str) -> ToolFailure:
    """Return Java's ConfigException for a required setting that is missing."""
    return ToolFailure(
        _CONFIG, f'Missing required configuration "{name}" which has no default value.'
    )


def metadata_path(directory: str) -> str:
    """Return the path of a directory's meta.properties."""
    return f"{directory}/{FILE_NAME}"


def read_stored_metadata(files: Files, directory: str) -> StoredMetadata | None:
    """Read a directory's meta.properties, None if it is not formatted; raises MetadataRefused."""
    path = metadata_path(directory)
    if not files.exists(path):
        return None
    properties = parse_properties(files.read_bytes(path), path)
    version = properties.get("version", "0")
    if not is_java_number(version, 32):
        raise MetadataRefused(f"Invalid meta.properties version string '{version}'")
    if int(version) not in (0, 1):
        raise MetadataRefused(f"Unknown meta.properties version number {int(version)}")
    fields: dict[str, str] = {key: properties[key] for key in _KEYS if key in properties}
    _check_metadata(fields, is_kraft=int(version) == 1)
    fields.pop("broker.id" if int(version) else "node.id", None)
    return StoredMetadata(int(version), fields)


def _check_metadata(fields: Mapping[str, str], *, is_kraft: bool) -> None:
    """Raise MetadataRefused if meta.properties lacks a key, or has an invalid value."""
    id_key = "node.id" if is_kraft else "broker.id"
    if is_kraft and "cluster.id" not in fields:
        raise MetadataRefused("cluster.id was not found.")
    if is_kraft and id_key not in fields:
        raise MetadataRefused(f"Failed to find {id_key}")
    if id_key in fields and not is_java_number(fields[id_key], 32):
        raise MetadataRefused(f"Unable to read {id_key} as a base-10 number.")
    if "directory.id" in fields:
        try:
            java_uuid(fields["directory.id"])
        except ToolFailure as failure:
            raise MetadataRefused(f"Unable to read directory.id as a Uuid: {failure}") from failure


class StorageInfo(NamedTuple):
    """The state of a node's directories as text; `errors` are printed on stderr."""

    text: str
    errors: tuple[str, ...]
    has_problems: bool


def read_storage_info(files: Files, settings: NodeSettings) -> StorageInfo:
    """Read the state of a node's directories, as kafka-storage info prints it.

    Returns the text to print, errors of files, and whether there are problems. Errors: ToolFailure.
    """
    found: list[str] = []
    problems: list[str] = []
    errors: list[str] = []
    first: StoredMetadata | None = None
    for directory in sorted(settings.directories):
        if not files.is_dir(directory):
            is_there = files.exists(directory)
            problems.append(f"{directory} {'is not a directory' if is_there else 'does not exist'}")
            continue
        found.append(directory)
        try:
            metadata = read_stored_metadata(files, directory)
        except StorageError as error:
            raise ToolFailure("java.io.IOException", str(error)) from error
        except MetadataRefused as error:
            errors.append(f"java.lang.RuntimeException: {error}")
            problems.append(f"Error loading {metadata_path(directory)}: {error}")
            continue
        if metadata is None:
            problems.append(f"{directory} is not formatted.")
        elif first is None:
            first = metadata
        else:
            problems += _mismatches(first, metadata)
    if first is not None and bool(first.version) != settings.is_kraft:
        problems.append(_other_mode_text(is_kraft=settings.is_kraft))
    parts = [
        _listing("Found log directory", "Found log directories", found),
        "" if first is None else f"Found metadata: {first.shown}\n\n",
        _listing("Found problem", "Found problems", problems),
    ]
    return StorageInfo("".join(parts), tuple(errors), bool(problems))


def _mismatches(first: StoredMetadata, other: StoredMetadata) -> list[str]:
    """Return a message if cluster ids, or else node ids, of two directories differ."""
    found = []
    if first.fields.get("cluster.id") != other.fields.get("cluster.id"):
        found.append("Mismatched cluster IDs between storage directories.")
    elif first.fields.get("node.id") != other.fields.get("node.id"):
        found.append("Mismatched node IDs between storage directories.")
    return found


def _other_mode_text(*, is_kraft: bool) -> str:
    """Return the message for directories formatted for the mode that is not configured.

    The configured mode is KRaft if `is_kraft`, else ZooKeeper.
    """
    modes = "a cluster in KRaft mode", "legacy mode"
    if is_kraft:
        return (
            f"The kafka configuration file appears to be for {modes[0]}, but the directories are "
            f"formatted for {modes[1]}."
        )
    return (
        "The kafka configuration file appears to be for a legacy cluster, but the directories are "
        f"formatted for {modes[0]}."
    )


def _listing(one: str, many: str, lines: list[str]) -> str:
    """Return lines below a heading, `one` or `many` by their number; "" without lines."""
    if not lines:
        return ""
    rows = "".join(f"  {line}\n" for line in lines)
    return f"{one if len(lines) == 1 else many}:\n{rows}\n"
