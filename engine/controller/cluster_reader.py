"""Read the cluster from its znodes: brokers, topics, states, topics to delete.

Up to a thousand reads are in flight at once, so that a failover with ten thousand partitions takes
few round trips.

A node that is deleted between the list of children and its read is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeVar

from engine.controller.context import LiveBroker, PartitionLeadership
from engine.host.coroutine import PromiseCoroutine, drive, together
from engine.host.promise import Promise
from engine.host.turns import LoopTurns
from engine.ids import uuid_bytes
from engine.limits import CONTROLLER_READS_MAX
from engine.model import TopicPartition
from engine.replication.metadata_cache import BrokerNode, Endpoint
from engine.znode.client import ZnodeClient
from engine.znode.errors import NoNode
from engine.znode.json_text import InvalidZnodeValue
from engine.znode.paths import (
    BROKER_IDS,
    CONTROLLER,
    broker_path,
    partition_state_path,
    topic_path,
)
from engine.znode.values import (
    BrokerRegistration,
    TopicAssignment,
    decode_broker,
    decode_controller,
    decode_partition_state,
    decode_topic,
)

#: The largest id or port, an int32 in Kafka.
_INT32_MAX = (1 << 31) - 1
_DIGITS_MAX = 10
_PROTOCOL_NUMBERS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}

K = TypeVar("K")
V = TypeVar("V")


async def read_many(
    read: Callable[[K], PromiseCoroutine[V]], keys: Iterable[K], turns: LoopTurns
) -> dict[K, V]:
    """Return the result of `read` by key, with up to CONTROLLER_READS_MAX reads at once.

    The keys must be distinct. The requests are spread over turns of the event loop, since the
    embedded store responds within the call.
    """
    listed = list(keys)
    found: dict[K, V] = {}
    share = turns.begin()
    for start in range(0, len(listed), CONTROLLER_READS_MAX):
        requested: dict[K, Promise[V]] = {}
        for key in listed[start : start + CONTROLLER_READS_MAX]:
            if share.is_over():
                await share.next()
            requested[key] = drive(read(key))
        for key, answer in requested.items():
            found[key] = await answer
    return found


class StoredTopic(NamedTuple):
    """A topic's assignment with the version of its node."""

    assignment: TopicAssignment
    version: int
    #: 16 bytes; None for a topic that was created before 2.8.
    topic_id: bytes | None


async def read_controller_id(client: ZnodeClient) -> int | None:
    """Return the id of the controller, None if no broker is the controller."""
    try:
        data, _ = await client.get(CONTROLLER)
    except NoNode:
        return None
    return decode_controller(data, CONTROLLER).broker_id


async def read_brokers(client: ZnodeClient) -> dict[int, LiveBroker]:
    """Return the registered brokers by id. Raises InvalidZnodeValue."""
    names = await client.children(BROKER_IDS)
    for name in names:
        if not _is_int32(name):
            raise InvalidZnodeValue(f"{BROKER_IDS}/{name}", "a broker's id", repr(name))
    ids = list(dict.fromkeys(map(int, names)))
    brokers = await together([read_broker(client, broker_id) for broker_id in ids])
    return {
        broker_id: broker
        for broker_id, broker in zip(ids, brokers, strict=True)
        if broker is not None
    }


async def read_broker(client: ZnodeClient, broker_id: int) -> LiveBroker | None:
    """Return a broker's registration and epoch, None if the broker is not registered."""
    path = broker_path(broker_id)
    try:
        data, stat = await client.get(path)
    except NoNode:
        return None
    return LiveBroker(parse_registration(broker_id, decode_broker(data, path), path), stat.czxid)


async def read_topic(client: ZnodeClient, topic: str) -> StoredTopic | None:
    """Return a topic's assignment, id and znode version, None if the topic does not exist."""
    path = topic_path(topic)
    try:
        data, stat = await client.get(path)
    except NoNode:
        return None
    assignment = decode_topic(data, path)
    topic_id = None if assignment.topic_id is None else uuid_bytes(assignment.topic_id)
    return StoredTopic(assignment, stat.version, topic_id)


async def read_leaderships(
    client: ZnodeClient, partitions: Iterable[TopicPartition], turns: LoopTurns
) -> dict[TopicPartition, PartitionLeadership]:
    """Return leader and ISR of the partitions that have a state node.

    A state that cannot be parsed counts as missing, as in Kafka: it is not overwritten, and only
    this partition has no leader.
    """

    async def read(partition: TopicPartition) -> PartitionLeadership | None:
        """Return a partition's state with its znode version; None if absent or invalid."""
        path = partition_state_path(partition)
        try:
            data, stat = await client.get(path)
            return PartitionLeadership(decode_partition_state(data, path), stat.version)
        except (NoNode, InvalidZnodeValue):
            return None

    read_states = await read_many(read, dict.fromkeys(partitions), turns)
    return {
        partition: leadership
        for partition, leadership in read_states.items()
        if leadership is not None
    }


def parse_registration(broker_id: int, registration: BrokerRegistration, path: str) -> BrokerNode:
    """Return id, endpoints and rack of a broker's registration; raises InvalidZnodeValue."""
    endpoints = tuple(
        _parse_endpoint(text, registration.security_protocols, path)
        for text in registration.endpoints
    )
    return BrokerNode(broker_id, endpoints, registration.rack)


def _is_int32(digits: str) -> bool:
    """Return True if the text is a decimal number from 0 to the maximum of int32."""
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS_MAX
    return is_number and int(digits) <= _INT32_MAX


def _parse_endpoint(text: str, protocols: Mapping[str, str], path: str) -> Endpoint:
    """Parse `LISTENER://host:port`; raises InvalidZnodeValue if it is malformed."""
    listener, separator, address = text.partition("://")
    host, colon, port = address.rpartition(":")
    number = _PROTOCOL_NUMBERS.get(protocols.get(listener, ""))
    if not (separator and colon and _is_int32(port)) or number is None:
        raise InvalidZnodeValue(path, "an endpoint NAME://host:port of a known protocol", text)
    return Endpoint(listener, host.removeprefix("[").removesuffix("]"), int(port), number)
