"""Implementation of `kctl explain partition`: query all its brokers and join the responses."""

from __future__ import annotations

import sys
from string import digits
from typing import Final

from engine.client.blocking import KafkaClient
from engine.client.broker_failure import Situation, effect_of_death
from engine.client.config_admin import ConfigResourceType, Resource, describe_configs
from engine.client.errors import NoCommonVersion
from engine.client.group_lags import find_groups_at
from engine.client.groups import list_groups
from engine.client.metadata import ClusterView, PartitionView, topic_failure
from engine.client.offsets import EARLIEST, LATEST, list_offsets
from engine.client.reader_findings import IDLE_TRANSACTION_MS
from engine.client.replica_ends import request_replica_offsets
from engine.client.transactions import (
    find_hanging,
    open_in,
    request_active_producers,
    request_ids_of_producers,
)
from engine.errors import EngineError
from engine.model import TopicPartition
from kctl import exits
from kctl.arguments import UnreadableArgument
from kctl.commands.topics.listing import topic_id_text
from kctl.connect import ClusterOptions, connect
from kctl.console import report_error
from kctl.iso_times import iso_time
from kctl.render import TABLES, Column, check_format, write_object, write_rows
from kctl.render.rows import OutputRow
from kctl.selection import add_similar_topic_hints, parse_numbers
from kctl.state_nodes import StateNodes, StoredState

REPLICA_FIELDS = (
    Column("broker_id", "REPLICA", right=True, is_name=True),
    Column("role", "ROLE"),
    Column("in_sync", "IN-SYNC", kind="boolean"),
    Column("alive", "ALIVE", kind="boolean"),
    Column("start_offset", "START", right=True, kind="integer?"),
    Column("end_offset", "END", right=True, kind="integer?"),
    Column("behind", "BEHIND", right=True, kind="integer?"),
    Column("if_died", "IF-IT-DIED-NOW"),
)
TRANSACTION_FIELDS = (
    Column("producer_id", "PRODUCER", right=True, is_name=True),
    Column("producer_epoch", "EPOCH", right=True),
    Column("start_offset", "OPEN-SINCE", right=True),
    Column("last_timestamp_ms", "LAST-WRITE", is_time=True),
    Column("transactional_id", "TRANSACTIONAL-ID", kind="string?"),
    Column("state", "STATE"),
    Column("waiting_groups", "WAITING-GROUPS", kind="string[]"),
)
PARTITION_COLUMNS = (
    Column("topic", "TOPIC", is_name=True),
    Column("partition", "PARTITION", right=True),
    Column("topic_id", "ID", wide=True, kind="string?"),
    Column("leader", "LEADER", right=True, kind="integer?"),
    Column("leader_epoch", "EPOCH", right=True),
    Column("isr", "ISR", kind="integer[]"),
    Column("min_isr", "MIN-ISR", right=True),
    Column("unclean_allowed", "UNCLEAN", kind="boolean"),
    Column("start_offset", "START", right=True, kind="integer?"),
    Column("high_watermark", "HIGH-WATERMARK", right=True, kind="integer?"),
    Column("last_stable_offset", "LAST-STABLE", right=True, kind="integer?"),
    Column("state_since", "SINCE", kind="string?"),
    Column("state_version", "VERSION", right=True, kind="integer?"),
    Column("controller_epoch", "CONTROLLER-EPOCH", right=True, kind="integer?"),
    Column("replicas", "REPLICAS", kind="object[]", fields=REPLICA_FIELDS),
    Column("transactions", "TRANSACTIONS", kind="object[]", fields=TRANSACTION_FIELDS),
)
#: Nested fields that are printed as separate tables.
_TABLES_WITHIN = ("replicas", "transactions")
#: Field, timestamp of the ListOffsets request, whether it is read_committed.
_LEADER_OFFSETS: Final = (
    ("start_offset", EARLIEST, False),
    ("high_watermark", LATEST, False),
    ("last_stable_offset", LATEST, True),
)
_NOTHING_OF_LEADER: Final[OutputRow] = {
    "start_offset": None,
    "high_watermark": None,
    "last_stable_offset": None,
    "transactions": [],
}
_MIN_ISR, _UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"


def explain_partition(
    options: ClusterOptions, text: str, zookeeper: str | None, output: str
) -> int:
    """Print a partition's leader, replicas and open transactions, from all brokers that have it.

    Returns the exit code. An error of one request is printed, and so are the other values; the exit
    code is that of the first such error. `text` is TOPIC:N or TOPIC-N.
    """
    check_format(output)
    failures = Failures()
    key = _parse_partition(text)
    with connect(options) as client:
        view = client.view([key.topic])
        failure = topic_failure(view, key.topic)
        if failure is not None:
            add_similar_topic_hints(client, [failure], [key.topic])
            raise failure
        partition = view.partition(key)
        if partition is None:
            count = len(view.topics[key.topic].partitions)
            named = text.rstrip(digits)  # as far as the number, with the sign that was typed
            raise UnreadableArgument("a partition", text, f"{named}0 to {named}{count - 1}")
        row = _read_partition_row(client, view, key, partition, failures)
        try:
            stored = StateNodes.of(client, zookeeper, options.timeout_s).read([key]).get(key)
        except EngineError as error:
            failures.report(error, "the metadata store")
            stored = None
    _print_partition({**row, **_state_columns(stored)}, output)
    return failures.exit_code


class Failures:
    """Prints errors of requests, and keeps the exit code of the first."""

    def __init__(self) -> None:
        self.exit_code = exits.OK

    def report(self, error: EngineError, subject: str) -> None:
        """Print an error; the first one determines the exit code."""
        report_error(error, subject)
        self.exit_code = self.exit_code or getattr(error, "exit_code", exits.FAILED)


def _parse_partition(text: str) -> TopicPartition:
    """Parse TOPIC:N or TOPIC-N; raises UnreadableArgument."""
    topic, sign, number = text.rpartition(":")
    if not sign:
        topic, sign, number = text.rpartition("-")
    if not topic or not number.isdecimal():
        raise UnreadableArgument("a partition", text, "TOPIC:PARTITION, as clicks:3")
    (index,) = parse_numbers(number)
    return TopicPartition(topic, index)


def _read_partition_row(
    client: KafkaClient,
    view: ClusterView,
    key: TopicPartition,
    partition: PartitionView,
    failures: Failures,
) -> dict[str, object]:
    """Request a partition's state from its replicas' brokers, and return it as a row.

    Each replica has its offsets, and the effect that its failure would have on the partition; a
    value that is not known is None. Failed requests are reported to `failures`.
    """
    min_isr, is_unclean_allowed = _read_topic_settings(client, key.topic, failures)
    alive = [id_ for id_ in partition.replicas if id_ in view.brokers]
    requested = {broker_id: [key] for broker_id in alive}
    ends = _offsets_by_broker(request_replica_offsets(client, requested))
    starts = _offsets_by_broker(request_replica_offsets(client, requested, start=True))
    situation = Situation(partition, alive, min_isr, is_unclean_allowed, ends)
    leader_end = ends.get(partition.leader)
    replicas = []
    for broker_id in partition.replicas:
        end = ends.get(broker_id)
        is_known = end is not None and leader_end is not None
        replicas.append(
            {
                "broker_id": broker_id,
                "role": "leader" if broker_id == partition.leader else "follower",
                "in_sync": broker_id in partition.isr,
                "alive": broker_id in alive,
                "start_offset": starts.get(broker_id),
                "end_offset": end,
                "behind": max(0, (leader_end or 0) - (end or 0)) if is_known else None,
                "if_died": effect_of_death(situation, broker_id),
            }
        )
    return {
        "topic": key.topic,
        "partition": key.partition,
        "topic_id": topic_id_text(view.topics[key.topic]),
        "leader": partition.leader if partition.has_leader else None,
        "leader_epoch": partition.leader_epoch,
        "isr": list(partition.isr),
        "min_isr": min_isr,
        "unclean_allowed": is_unclean_allowed,
        **(
            read_leader_fields(client, key, failures)
            if partition.has_leader
            else _NOTHING_OF_LEADER
        ),
        "replicas": replicas,
    }


def read_leader_fields(client: KafkaClient, key: TopicPartition, failures: Failures) -> OutputRow:
    """Request offsets and open transactions of a partition from its leader.

    Stops after the first error, which is printed: further requests would take as long to fail with
    the same error. A field without a response is None.
    """
    row = dict(_NOTHING_OF_LEADER)
    for name, timestamp, read_committed in _LEADER_OFFSETS:
        found = list_offsets(client, {key: timestamp}, read_committed=read_committed)[key]
        if isinstance(found, EngineError):
            failures.report(found, str(key))
            return row
        row[name] = found.offset
    row["transactions"] = _open_transactions(client, key, failures)
    if row["transactions"]:
        first = row["transactions"][0]
        first["waiting_groups"] = _groups_at(client, key, first["start_offset"], failures)
    return row


def _open_transactions(
    client: KafkaClient, key: TopicPartition, failures: Failures
) -> list[OutputRow]:
    """Return a partition's open transactions, sorted by first offset: the first blocks readers.

    Their state is the coordinator's, or `hangs` if no coordinator knows them as open. Empty for
    brokers that do not report producers, or after an error, which is printed.
    """
    try:
        found = request_active_producers(client, [key])[key]
        if isinstance(found, EngineError):
            raise found
        ids = request_ids_of_producers(client, {one.producer_id for one in open_in(found)})
        hanging = {
            one.producer.producer_id
            for one in find_hanging(client, found, idle_for_ms=IDLE_TRANSACTION_MS)
        }
    except NoCommonVersion:
        # Brokers before 2.8 do not report producers.
        return []
    except EngineError as error:
        failures.report(error, "transactions")
        return []
    return [
        {
            "producer_id": one.producer_id,
            "producer_epoch": one.producer_epoch,
            "start_offset": one.transaction_start_offset,
            "last_timestamp_ms": one.last_timestamp_ms,
            "transactional_id": ids.get(one.producer_id, (None, None))[0],
            "state": "hangs" if one.producer_id in hanging else _state_of(ids.get(one.producer_id)),
            # read_committed readers wait at the start of the first open transaction.
            "waiting_groups": [],
        }
        for one in open_in(found)
    ]


def _groups_at(
    client: KafkaClient, key: TopicPartition, offset: int, failures: Failures
) -> list[str]:
    """Return the groups whose committed offset in a partition is `offset`, as blocked groups have.

    Errors are printed, once for all groups of a coordinator; these groups are missing.
    """
    try:
        groups, unlisted = list_groups(client)
        there, errors = find_groups_at(client, groups, key, offset)
    except EngineError as error:
        failures.report(error, "groups")
        return []
    for broker_id, failure in unlisted.items():
        failures.report(failure, f"groups of broker {broker_id}")
    # Print one error per coordinator, not one for each of its groups.
    alike: dict[str, list[str]] = {}
    for group_id, failure in errors.items():
        alike.setdefault(str(failure), []).append(group_id)
    for first, *more in alike.values():
        subject = f"{len(more) + 1} groups, as {first}" if more else f"group {first}"
        failures.report(errors[first], subject)
    return there


def _state_of(listed: tuple[str, str] | None) -> str:
    """Return the transaction's state of a pair (transactional id, state), "unknown" for None.

    None means that no broker lists the producer's transaction.
    """
    return "unknown" if listed is None else listed[1]


def _read_topic_settings(client: KafkaClient, topic: str, failures: Failures) -> tuple[int, bool]:
    """Return a topic's min.insync.replicas, and whether unclean elections are allowed.

    On an error, which is reported to `failures`, the result is (1, False).
    """
    resource = Resource(ConfigResourceType.TOPIC, topic)
    entries = describe_configs(client, [resource], names=(_MIN_ISR, _UNCLEAN))[resource]
    if isinstance(entries, EngineError):
        failures.report(entries, topic)
        return 1, False
    values = {entry.name: entry.value for entry in entries}
    return int(values.get(_MIN_ISR) or 1), values.get(_UNCLEAN) == "true"


def _offsets_by_broker(
    offsets: dict[tuple[TopicPartition, int], int | EngineError],
) -> dict[int, int]:
    """Return log end offsets (exclusive) by broker, without the brokers that failed."""
    return {
        broker_id: offset
        for (_, broker_id), offset in offsets.items()
        if not isinstance(offset, EngineError)
    }


def _state_columns(stored: StoredState | None) -> dict[str, object]:
    """Return when and by which controller the partition's state in ZooKeeper was last written.

    Empty for None, if the state could not be read.
    """
    if stored is None:
        return {}
    return {
        "state_since": iso_time(stored.stat.mtime_ms),
        "state_version": stored.stat.version,
        "controller_epoch": stored.state.controller_epoch,
    }


def _print_partition(row: OutputRow, output: str) -> None:
    """Write the partition as one object; as a table, replicas and transactions follow below."""
    if output not in TABLES:
        write_object(PARTITION_COLUMNS, row, output)
        return
    columns = [column for column in PARTITION_COLUMNS if column.key not in _TABLES_WITHIN]
    write_object(columns, row, output)
    sys.stdout.write("\n")
    write_rows(REPLICA_FIELDS, row["replicas"], output)
    if row["transactions"]:
        sys.stdout.write("\n")
        write_rows(TRANSACTION_FIELDS, row["transactions"], output)
