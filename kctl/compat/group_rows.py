"""Rows of the tables of `kafka-consumer-groups --describe`, for both releases.

Source: ConsumerGroupCommand.collectGroupsOffsets, shouldPrintMemberState of 3.9.1 and 4.3.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TextIO

from engine.client.blocking import KafkaClient
from engine.client.groups import CommitView, GroupDescription
from engine.model import TopicPartition
from kctl.compat.group_answers import committed_views, end_offsets
from kctl.compat.java_failures import ToolFailure
from kctl.compat.java_order import in_java_order

MISSING: Final = "-"
WIDTH_MIN: Final = 15
_REBALANCING: Final = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")


class OffsetRow(NamedTuple):
    """A row to print: a partition with a committed offset or a member."""

    group: str
    topic: str
    partition: int
    current_offset: int | None
    end_offset: int
    consumer_id: str
    host: str
    client_id: str
    #: Leader epoch of the committed offset, None if unknown.
    leader_epoch: int | None = None

    def cells(self) -> tuple[str, ...]:
        """Return the row's texts for the tool's table; `-` where there is no committed offset."""
        lag = None if self.current_offset is None else self.end_offset - self.current_offset
        return (
            self.group,
            self.topic,
            str(self.partition),
            MISSING if self.current_offset is None else str(self.current_offset),
            str(self.end_offset),
            MISSING if lag is None else str(lag),
            self.consumer_id,
            self.host,
            self.client_id,
        )


def print_state_note(group: GroupDescription, row_count: int, out: TextIO, err: TextIO) -> bool:
    """Print the tool's note on a group's state; return True if its table is to be printed.

    `row_count` is the number of rows of the table. Errors: ToolFailure for a state that the tool
    does not expect.
    """
    if group.state == "Dead":
        out.write(f"\nError: Consumer group '{group.group_id}' does not exist.\n")
        return False
    if group.state == "Empty":
        out.flush()
        err.write(f"\nConsumer group '{group.group_id}' has no active members.\n")
    elif group.state in _REBALANCING:
        err.write(f"\nWarning: Consumer group '{group.group_id}' is rebalancing.\n")
    elif group.state != "Stable":
        message = f"Expected a valid consumer group state, but found '{group.state}'."
        raise ToolFailure("org.apache.kafka.common.KafkaException", message)
    return row_count > 0


def request_offset_rows(client: KafkaClient, group: GroupDescription) -> list[OffsetRow]:
    """Return rows of the partitions that a group has assigned or committed, with their lag.

    Those of the member with most partitions come first, unassigned ones last. Errors: ToolFailure.
    """
    offsets = committed_views(client, group.group_id)
    rows: list[OffsetRow] = []
    assigned: set[TopicPartition] = set()
    readers = [member for member in group.members if member.partitions]
    for member in sorted(readers, key=lambda reader: -len(reader.partitions or ())):
        partitions = member.partitions or ()
        assigned.update(partitions)
        names = (member.member_id, member.client_host, member.client_id)
        rows += _request_rows(client, group.group_id, partitions, offsets, names)
    left = [partition for partition in offsets if partition not in assigned]
    if left:
        rows += _request_rows(client, group.group_id, left, offsets, (MISSING, MISSING, MISSING))
    return rows


def _request_rows(
    client: KafkaClient,
    group_id: str,
    partitions: Sequence[TopicPartition],
    offsets: Mapping[TopicPartition, CommitView],
    reader: tuple[str, str, str],
) -> list[OffsetRow]:
    """Return a row for each partition, in Java's order, with the member `reader`.

    `reader` is member id, host and client id.
    """
    ends = end_offsets(client, partitions)
    rows = []
    for partition in in_java_order(ends):
        commit = offsets.get(partition)
        epoch = None if commit is None or commit.leader_epoch < 0 else commit.leader_epoch
        offset = None if commit is None else commit.offset
        place = (group_id, partition.topic, partition.partition)
        rows.append(OffsetRow(*place, offset, ends[partition], *reader, epoch))
    return rows


def coordinator_text(client: KafkaClient, group_id: str, gap: str = "  ") -> str:
    """Return address and id of a group's coordinator: `host:port  (1)`, separated by `gap`."""
    coordinator = client.coordinator(group_id)
    broker_ids = [
        broker_id
        for broker_id, broker in client.brokers_view().brokers.items()
        if broker.address == coordinator
    ]
    return f"{coordinator.host}:{coordinator.port}{gap}({broker_ids[0] if broker_ids else '?'})"


def width_of(texts: Iterable[str], minimum: int = WIDTH_MIN) -> int:
    """Return the width of a column: the length of its longest text, at least `minimum`."""
    return max([minimum, *map(len, texts)])
