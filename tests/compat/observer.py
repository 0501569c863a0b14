"""What a cluster answers about groups and transactions, apart from the clients under test."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final, NamedTuple

from engine.client.consumer_protocol import decode_assignment
from engine.kafka_errors import NONE
from engine.wire.structs import message_class
from tests.cluster.raw_client import RawClient

_TIMEOUT_S: Final = 5.0
NO_OFFSET: Final = -1
_TRANSACTIONAL_ID: Final = 1
_LATEST: Final = -1


class GroupView(NamedTuple):
    """A group as its coordinator describes it."""

    state: str
    members: int
    #: The partitions of all members' assignments, in order; one assigned twice stands twice.
    partitions: list[int]
    coordinator: int


class Observer:
    """Asks brokers by sockets; OSError says that there is no answer now. For one thread."""

    def __init__(self, bootstrap: str) -> None:
        self._addresses = bootstrap.split(",")
        self._clients: dict[str, RawClient] = {}

    def coordinator(self, group: str) -> tuple[int, str]:
        """Return a coordinator's id and address."""
        for address in self._addresses:
            with suppress(OSError):
                response = self._ask(address, "FindCoordinator", 0, key=group)
                if response.error_code == NONE:
                    return response.node_id, f"{response.host}:{response.port}"
        raise ConnectionError(f"no broker names a coordinator of {group}")

    def describe(self, group: str) -> GroupView:
        """Return a group, without members where its coordinator refuses."""
        node_id, address = self.coordinator(group)
        (described,) = self._ask(address, "DescribeGroups", 0, groups=[group]).groups
        if described.error_code != NONE:
            return GroupView(f"error {described.error_code}", 0, [], node_id)
        partitions = [
            assigned.partition
            for member in described.members
            for assigned in decode_assignment(member.member_assignment) or ()
        ]
        return GroupView(described.group_state, len(described.members), sorted(partitions), node_id)

    def committed(self, group: str, topic: str, partitions: int) -> dict[int, int] | None:
        """Return committed offsets, NO_OFFSET where there is none; None if they are refused."""
        _, address = self.coordinator(group)
        wanted = message_class("OffsetFetchRequest").OffsetFetchRequestTopic(
            name=topic, partition_indexes=list(range(partitions))
        )
        response = self._ask(address, "OffsetFetch", 2, group_id=group, topics=[wanted])
        rows = [row for row_topic in response.topics for row in row_topic.partitions]
        if response.error_code != NONE or any(row.error_code != NONE for row in rows):
            return None
        return {row.partition_index: row.committed_offset for row in rows}

    def leaders(self, topic: str) -> dict[int, int] | None:
        """Return the leaders of a topic whose replicas are all in sync, None of any other."""
        wanted = message_class("MetadataRequest").MetadataRequestTopic(name=topic)
        address = self._first_alive()
        (found,) = self._ask(address, "Metadata", 4, topics=[wanted]).topics
        rows = found.partitions
        if not rows or any(
            row.leader_id < 0 or len(row.isr_nodes) < len(row.replica_nodes) for row in rows
        ):
            return None
        return {row.partition_index: row.leader_id for row in rows}

    def transaction_coordinator(self, transactional_id: str) -> int:
        """Return the id of the broker that coordinates a transactional id."""
        for address in self._addresses:
            with suppress(OSError):
                response = self._ask(
                    address, "FindCoordinator", 1, key=transactional_id, key_type=_TRANSACTIONAL_ID
                )
                if response.error_code == NONE:
                    node_id: int = response.node_id
                    return node_id
        raise ConnectionError(f"no broker names a coordinator of {transactional_id}")

    def end_offsets(self, topic: str, *, is_committed: bool) -> dict[int, int]:
        """Return the end of each partition, or its last stable offset; ConnectionError without."""
        request = message_class("ListOffsetsRequest")
        wanted = message_class("MetadataRequest").MetadataRequestTopic(name=topic)
        known = self._ask(self._first_alive(), "Metadata", 4, topics=[wanted])
        addresses = {broker.node_id: f"{broker.host}:{broker.port}" for broker in known.brokers}
        ends = {}
        for row in known.topics[0].partitions:
            if row.leader_id not in addresses:
                raise ConnectionError(f"{topic}-{row.partition_index} has no leader")
            partition = request.ListOffsetsPartition(
                partition_index=row.partition_index, timestamp=_LATEST
            )
            response = self._ask(
                addresses[row.leader_id],
                "ListOffsets",
                2,
                replica_id=-1,
                isolation_level=int(is_committed),
                topics=[request.ListOffsetsTopic(name=topic, partitions=[partition])],
            )
            (found,) = response.topics[0].partitions
            if found.error_code != NONE:
                raise ConnectionError(f"{topic}-{row.partition_index}: {found.error_code}")
            ends[row.partition_index] = found.offset
        return ends

    def _first_alive(self) -> str:
        for address in self._addresses:
            with suppress(OSError):
                self._ask(address, "ApiVersions", 0)
                return address
        raise ConnectionError("no broker answers")

    def _ask(self, address: str, name: str, version: int, **fields: Any) -> Any:
        try:
            client = self._clients.get(address)
            if client is None:
                client = self._clients[address] = RawClient(address, timeout_s=_TIMEOUT_S)
            return client.ask(name, version, **fields)
        except OSError:
            gone = self._clients.pop(address, None)
            if gone is not None:
                gone.socket.close()
            raise
