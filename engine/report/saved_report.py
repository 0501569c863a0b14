"""An earlier report in the form in which reports are compared, and its reading from JSON.

Only the compared values are read, and each is checked, since the file may be from anyone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeVar

from engine.client.metadata import NO_BROKER, BrokerView, ClusterView, PartitionView, TopicView
from engine.client.settings import Address
from engine.errors import EngineError
from engine.exporter.view_changes import ClusterSnapshot
from engine.json_text import JsonObject, read_json

_FORMAT: Final = 1
_USAGE_EXIT: Final = 2

T = TypeVar("T")


class BadReport(EngineError):
    """A file is not a saved report."""

    exit_code = _USAGE_EXIT
    hint = "save one by `kctl report cluster -o json > report.json`"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: no saved report: {reason}")
        self.path = path
        self.reason = reason


class ReportedPartition(NamedTuple):
    """A partition's leader and replicas."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class ReportedTopic(NamedTuple):
    """A topic with its size on the leaders, its write rate, and the settings that it overrides."""

    topic: str
    topic_id: str
    partition_count: int
    replication_factor: int
    size_bytes: int
    bytes_per_s: int | None
    records_per_s: float | None
    settings: Mapping[str, str | None]
    partitions: tuple[ReportedPartition, ...]


class ReportedGroup(NamedTuple):
    """A group with its lag and the worst verdict on any of its partitions."""

    group: str
    state: str
    member_count: int | None
    lag: int
    lag_per_s: float | None
    verdict: str
    reason: str


class SavedReport(NamedTuple):
    """The facts of a report that are compared; settings are by broker or topic."""

    made_at_ms: int
    cluster_id: str | None
    snapshot: ClusterSnapshot
    partition_counts: Mapping[str, int]
    sizes: Mapping[str, int]
    settings: Mapping[str, Mapping[str, str | None]]
    groups: Mapping[str, str]
    findings: frozenset[tuple[str, str]]


def parse_report(raw: bytes, path: str) -> SavedReport:
    """Return the report in the JSON text of a file; raises BadReport if it is malformed.

    `path` is only for the error.
    """
    try:
        document = read_json(raw)
        return _parse_document(_of_type(document, dict, "the document"))
    except (ValueError, UnicodeDecodeError) as error:
        raise BadReport(path, str(error)) from error


def _parse_document(document: JsonObject) -> SavedReport:
    """Return the report in a JSON document; raises ValueError for any malformed part."""
    if document.get("format") != _FORMAT:
        raise ValueError(f"its format is {document.get('format')!r}, and {_FORMAT} is read")
    topics = [_parse_topic(row) for row in _rows(document, "topics")]
    brokers = [_field(row, "broker_id", int) for row in _rows(document, "brokers")]
    settings: dict[str, Mapping[str, str | None]] = {
        f"broker {_field(row, 'broker_id', int)}": _settings(row)
        for row in _rows(document, "broker_settings")
    }
    settings |= {f"topic {topic.topic}": topic.settings for topic in topics}
    cluster_id = document.get("cluster_id")
    return SavedReport(
        _field(document, "made_at_ms", int),
        None if cluster_id is None else str(cluster_id),
        snapshot_of(cluster_id, _controller(document), brokers, topics),
        {topic.topic: topic.partition_count for topic in topics},
        {topic.topic: topic.size_bytes for topic in topics},
        settings,
        {
            _field(row, "group", str): _field(row, "verdict", str)
            for row in _rows(document, "groups")
        },
        frozenset(
            (_field(row, "finding", str), _field(row, "subject", str))
            for row in _rows(document, "findings")
        ),
    )


def snapshot_of(
    cluster_id: str | None,
    controller_id: int | None,
    broker_ids: list[int],
    topics: list[ReportedTopic],
) -> ClusterSnapshot:
    """Return the cluster of a report as a snapshot, so that two reports can be compared.

    Reassignments, broker addresses and offline replicas are not in a report: the snapshot has none.
    """
    nowhere = Address("", 0)
    views = {
        topic.topic: TopicView(
            topic.topic,
            topic.topic_id.encode(),
            False,
            tuple(PartitionView(*partition, ()) for partition in topic.partitions),
        )
        for topic in topics
    }
    brokers = {broker_id: BrokerView(broker_id, nowhere) for broker_id in broker_ids}
    controller_id = NO_BROKER if controller_id is None else controller_id
    return ClusterSnapshot(ClusterView(cluster_id, controller_id, brokers, views), None)


def _controller(document: Mapping[str, object]) -> int | None:
    """Return the controller's id, None if the report has none."""
    if document.get("controller_id") is None:
        return None
    return _field(document, "controller_id", int)


def _parse_topic(row: Mapping[str, object]) -> ReportedTopic:
    """Return a topic of a saved report; rates are left None, as they are not compared."""
    partitions = tuple(
        ReportedPartition(
            _field(one, "partition", int),
            _field(one, "leader", int),
            _field(one, "leader_epoch", int),
            _ids(one, "replicas"),
            _ids(one, "isr"),
        )
        for one in _rows(row, "partitions")
    )
    name, topic_id = _field(row, "topic", str), _field(row, "topic_id", str)
    replication_factor = len(partitions[0].replicas) if partitions else 0
    size_bytes = _field(row, "size_bytes", int)
    figures = len(partitions), replication_factor, size_bytes, None, None
    return ReportedTopic(name, topic_id, *figures, _settings(row), partitions)


def _settings(row: Mapping[str, object]) -> dict[str, str | None]:
    """Return the settings in a row as texts; null becomes None."""
    settings = _field(row, "settings", dict)
    return {key: None if value is None else str(value) for key, value in settings.items()}


def _ids(row: Mapping[str, object], key: str) -> tuple[int, ...]:
    """Return the broker ids in the field `key`; raises ValueError if it is no list of integers."""
    return tuple(_of_type(value, int, key) for value in _field(row, key, list))


def _rows(row: Mapping[str, object], key: str) -> list[JsonObject]:
    """Return the objects in the field `key`; raises ValueError if it is no list of objects."""
    return [_of_type(value, dict, f"a row of {key}") for value in _field(row, key, list)]


def _field(row: Mapping[str, object], key: str, kind: type[T]) -> T:
    """Return a field of the given type; raises ValueError if it is missing or of another type."""
    if key not in row:
        raise ValueError(f"{key} is missing")
    return _of_type(row[key], kind, key)


def _of_type(value: object, kind: type[T], what: str) -> T:
    """Return the value if it has the type, else raise ValueError, which names it `what`.

    A bool does not count as int, although Python's bool is one.
    """
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"{what} is {type(value).__name__}, and not {kind.__name__}")
    return value
