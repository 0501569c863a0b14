"""Implementation of `kctl brokers`: request the brokers' own descriptions, print rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.metadata import BrokerView, ClusterView
from engine.errors import EngineError
from engine.wire.errors import UnknownMessage
from engine.wire.headers import api
from kctl import exits
from kctl.command_results import end_with
from kctl.connect import ClusterOptions, connect
from kctl.console import report_error
from kctl.render import Column, check_format, write_rows
from kctl.selection import select_topics

if TYPE_CHECKING:
    from engine.client.cluster_admin import LogDirView
    from engine.client.config_admin import ConfigEntry
    from engine.client.connection import VersionRange

LIST_COLUMNS = (
    Column("broker_id", "BROKER", right=True),
    Column("host", "HOST"),
    Column("port", "PORT", right=True),
    Column("rack", "RACK", kind="string?"),
    Column("is_controller", "CONTROLLER", kind="boolean?"),
)
LOG_DIR_FIELDS = (
    Column("path", "PATH", is_name=True),
    Column("replicas", "REPLICAS", right=True),
    Column("size_bytes", "SIZE", right=True, is_size=True),
)
DESCRIBE_COLUMNS = (
    *LIST_COLUMNS,
    Column("replicas", "REPLICAS", right=True),
    Column("leaders", "LEADERS", right=True),
    Column("followers", "FOLLOWERS", right=True),
    Column("out_of_sync", "OUT-OF-SYNC", right=True),
    Column("size_bytes", "SIZE", right=True, is_size=True, kind="integer?"),
    Column("disk_usable_bytes", "DISK-FREE", right=True, is_size=True, kind="integer?"),
    Column("protocol_version", "PROTOCOL", wide=True, kind="string?"),
    Column("log_dirs", "LOG-DIRS", wide=True, kind="object[]?", fields=LOG_DIR_FIELDS),
    Column("configs", "SETTINGS", wide=True, kind="string?{}?"),
)
LOG_DIR_COLUMNS = (
    Column("broker_id", "BROKER", right=True),
    Column("path", "PATH", is_name=True),
    Column("replicas", "REPLICAS", right=True),
    Column("size_bytes", "SIZE", right=True, is_size=True),
    Column("disk_total_bytes", "DISK", right=True, is_size=True, kind="integer?"),
    Column("disk_usable_bytes", "DISK-FREE", right=True, is_size=True, kind="integer?"),
    Column("error", "ERROR", kind="string?"),
)
REPLICA_COLUMNS = (
    Column("broker_id", "BROKER", right=True),
    Column("path", "PATH"),
    Column("topic", "TOPIC", is_name=True),
    Column("partition", "PARTITION", right=True),
    Column("size_bytes", "SIZE", right=True, is_size=True),
    Column("offset_lag", "LAG", right=True),
    Column("is_future", "MOVING-IN", kind="boolean"),
)
API_COLUMNS = (
    Column("broker_id", "BROKER", right=True),
    Column("key", "KEY", right=True),
    Column("api", "API", is_name=True),
    Column("lowest", "LOWEST", right=True),
    Column("highest", "HIGHEST", right=True),
    Column("usable", "USABLE", right=True, kind="integer?"),
)


class UnknownBroker(EngineError):
    """A broker was named that is not alive."""

    hint = "`kctl brokers list` shows those that are"

    def __init__(self, broker_id: int, alive: list[int]) -> None:
        names = ", ".join(map(str, alive)) or "none"
        super().__init__(f"no broker {broker_id} is alive; alive: {names}")
        self.broker_id = broker_id


class LogDirsRequest(NamedTuple):
    """The options of `kctl brokers log-dirs`."""

    ids: list[int]
    topics: list[str] | None
    replicas: bool
    output: str


def list_brokers(options: ClusterOptions, output: str) -> int:
    """Print a row for each live broker; returns the exit code."""
    check_format(output)
    with connect(options) as client:
        view = client.view([])
    rows = [_broker_row(broker, view) for _, broker in sorted(view.brokers.items())]
    write_rows(LIST_COLUMNS, rows, output)
    return exits.OK


def _broker_row(broker: BrokerView, view: ClusterView) -> dict[str, object]:
    """Return the columns of a broker's address, rack and role.

    `is_controller` is None if no broker reports which one is the controller.
    """
    is_controller = broker.broker_id == view.controller_id
    return {
        "broker_id": broker.broker_id,
        "host": broker.address.host,
        "port": broker.address.port,
        "rack": broker.rack,
        "is_controller": is_controller if view.is_controller_known else None,
    }


def _select_brokers(view: ClusterView, ids: list[int]) -> tuple[list[int], int]:
    """Return the requested brokers that are alive, and the number of requested ones that are not.

    An error is printed for each of the latter. An empty `ids` requests every live broker.
    """
    if not ids:
        return sorted(view.brokers), 0
    failures = 0
    for broker_id in ids:
        if broker_id not in view.brokers:
            report_error(UnknownBroker(broker_id, sorted(view.brokers)))
            failures += 1
    return [broker_id for broker_id in dict.fromkeys(ids) if broker_id in view.brokers], failures


def describe_brokers(options: ClusterOptions, ids: list[int], output: str) -> int:
    """Print a row for each broker: replicas, disks and settings; returns the exit code."""
    check_format(output)
    from engine.client.cluster_admin import describe_log_dirs

    with connect(options) as client:
        view = client.view(None)
        chosen, failures = _select_brokers(view, ids)
        dirs = describe_log_dirs(client, chosen)
        configs = _describe_brokers(client, chosen)
    counts = _Counts(view)
    rows = []
    for broker_id in chosen:
        row = _broker_row(view.brokers[broker_id], view) | counts.columns(broker_id)
        held = dirs[broker_id]
        if isinstance(held, EngineError):
            report_error(held, f"broker {broker_id}")
            failures += 1
        else:
            row |= _disk_row(held)
            failures += _report_failed_dirs(broker_id, held)
        settings = configs[broker_id]
        if isinstance(settings, EngineError):
            report_error(settings, f"broker {broker_id}")
            failures += 1
        else:
            row["configs"] = {e.name: e.value for e in settings if not e.is_default}
            row["protocol_version"] = next(
                (e.value for e in settings if e.name == "inter.broker.protocol.version"), None
            )
        rows.append(row)
    return end_with(DESCRIBE_COLUMNS, rows, output, failures=failures)


def _describe_brokers(
    client: KafkaClient, ids: list[int]
) -> dict[int, list[ConfigEntry] | EngineError]:
    """Return the settings of each broker, or the error of its request."""
    from engine.client.config_admin import ConfigResourceType, Resource, describe_configs

    resources = [Resource(ConfigResourceType.BROKER, str(broker_id)) for broker_id in ids]
    configs = describe_configs(client, resources)
    return {int(resource.name): entries for resource, entries in configs.items()}


class _Counts:
    """Counts of replicas, leaders and out-of-sync replicas on each broker."""

    def __init__(self, view: ClusterView) -> None:
        partitions = [p for topic in view.topics.values() for p in topic.partitions]
        self._replicas = Counter(b for p in partitions for b in p.replicas)
        self._leaders = Counter(p.leader for p in partitions)
        self._lagging = Counter(b for p in partitions for b in set(p.replicas) - set(p.isr))

    def columns(self, broker_id: int) -> dict[str, int]:
        """Return the numbers of a broker's replicas: all, leading, following, out of sync."""
        return {
            "replicas": self._replicas[broker_id],
            "leaders": self._leaders[broker_id],
            "followers": self._replicas[broker_id] - self._leaders[broker_id],
            "out_of_sync": self._lagging[broker_id],
        }


def _disk_row(dirs: list[LogDirView]) -> dict[str, object]:
    """Return the columns on a broker's log directories.

    `disk_usable_bytes` is the sum of the directories that report it; None if none does.
    """
    free = [d.usable_bytes for d in dirs if d.usable_bytes is not None]
    return {
        "size_bytes": sum(r.size_bytes for d in dirs for r in d.replicas),
        "disk_usable_bytes": sum(free) if free else None,
        "log_dirs": [
            {
                "path": log_dir.path,
                "replicas": len(log_dir.replicas),
                "size_bytes": sum(replica.size_bytes for replica in log_dir.replicas),
            }
            for log_dir in dirs
        ],
    }


def list_log_dirs(options: ClusterOptions, request: LogDirsRequest) -> int:
    """Print a row for each log directory, or with `--replicas` for each replica in one.

    Returns the exit code: a failure if a broker, topic or directory cannot be read.
    """
    from engine.client.cluster_admin import describe_log_dirs

    check_format(request.output)
    with connect(options) as client:
        chosen, failures = _select_brokers(client.view([]), request.ids)
        if request.topics:
            _, _, unknown = select_topics(client, request.topics, None)
            for error in unknown:
                report_error(error)
            failures += len(unknown)
        dirs_by_broker = describe_log_dirs(client, chosen, request.topics)
    rows: list[dict[str, object]] = []
    for broker_id, dirs in dirs_by_broker.items():
        if isinstance(dirs, EngineError):
            report_error(dirs, f"broker {broker_id}")
            failures += 1
            continue
        failures += _report_failed_dirs(broker_id, dirs)
        for log_dir in dirs:
            rows += (
                _replica_rows(broker_id, log_dir)
                if request.replicas
                else [_log_dir_row(broker_id, log_dir)]
            )
    return end_with(
        REPLICA_COLUMNS if request.replicas else LOG_DIR_COLUMNS,
        rows,
        request.output,
        failures=failures,
    )


def _report_failed_dirs(broker_id: int, dirs: Sequence[LogDirView]) -> int:
    """Report the log directories that a broker cannot use; return their number."""
    failed = [(log_dir.path, log_dir.error) for log_dir in dirs if log_dir.error is not None]
    for path, error in failed:
        report_error(error, f"broker {broker_id}: {path}")
    return len(failed)


def _log_dir_row(broker_id: int, log_dir: LogDirView) -> dict[str, object]:
    """Return a log directory's row; disk bytes are None if the broker does not report them."""
    return {
        "broker_id": broker_id,
        "path": log_dir.path,
        "replicas": len(log_dir.replicas),
        "size_bytes": sum(replica.size_bytes for replica in log_dir.replicas),
        "disk_total_bytes": log_dir.total_bytes,
        "disk_usable_bytes": log_dir.usable_bytes,
        "error": None if log_dir.error is None else str(log_dir.error),
    }


def _replica_rows(broker_id: int, log_dir: LogDirView) -> list[dict[str, object]]:
    """Return one row for each replica in a log directory, future replicas included."""
    return [
        {
            "broker_id": broker_id,
            "path": log_dir.path,
            "topic": replica.partition.topic,
            "partition": replica.partition.partition,
            "size_bytes": replica.size_bytes,
            "offset_lag": replica.offset_lag,
            "is_future": replica.is_future,
        }
        for replica in log_dir.replicas
    ]


def list_api_versions(options: ClusterOptions, ids: list[int], output: str) -> int:
    """Print each broker's range of versions of each API, a row for each; returns the exit code."""
    from engine.client.cluster_admin import api_versions

    check_format(output)
    rows = []
    with connect(options) as client:
        chosen, failures = _select_brokers(client.view([]), ids)
        for broker_id in chosen:
            try:
                broker_apis = api_versions(client, broker_id)
            except EngineError as error:
                report_error(error, f"broker {broker_id}")
                failures += 1
                continue
            for key, versions in sorted(broker_apis.versions.items()):
                rows.append({"broker_id": broker_id} | _api_row(key, versions))
    return end_with(API_COLUMNS, rows, output, failures=failures)


def _api_row(key: int, versions: VersionRange) -> dict[str, object]:
    """Return the row of an API: the broker's versions, and the highest that both sides support.

    `usable` is None if the broker and this client have no version in common. An API that this
    release does not know is named by its number.
    """
    name, usable = f"API {key}", None
    try:
        own_api = api(key)
    except UnknownMessage:
        pass
    else:
        name = own_api.name
        best = min(own_api.stable.highest, versions.highest)
        usable = best if best >= max(own_api.stable.lowest, versions.lowest) else None
    return {
        "key": key,
        "api": name,
        "lowest": versions.lowest,
        "highest": versions.highest,
        "usable": usable,
    }
