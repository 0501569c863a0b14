"""Reading the cluster from its znodes: brokers, topics, states, what is to delete.

What vanishes between a list of children and the read of one of them is passed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from engine.controller.context import LiveBroker, PartitionLeadership
from engine.model import TopicPartition
from engine.naming import uuid_bytes
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

# A broker's id is an int32.
_ID_DIGITS_MAX = 10
_PROTOCOL_NUMBERS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


class StoredTopic(NamedTuple):
    """A topic's assignment with the version of its node."""

    assignment: TopicAssignment
    version: int
    #: 16 bytes; only topics from before 2.8 have none.
    topic_id: bytes | None


async def read_controller_id(client: ZnodeClient) -> int | None:
    """Return the broker that is the controller, None if there is none."""
    try:
        data, _ = await client.get(CONTROLLER)
    except NoNode:
        return None
    return decode_controller(data, CONTROLLER).broker_id


async def read_brokers(client: ZnodeClient) -> dict[int, LiveBroker]:
    """Return the brokers that are registered, by id."""
    brokers = {}
    for name in await client.children(BROKER_IDS):
        if not (name.isascii() and name.isdigit() and len(name) <= _ID_DIGITS_MAX):
            raise InvalidZnodeValue(f"{BROKER_IDS}/{name}", "a broker's id", repr(name))
        broker = await read_broker(client, int(name))
        if broker is not None:
            brokers[int(name)] = broker
    return brokers


async def read_broker(client: ZnodeClient, broker_id: int) -> LiveBroker | None:
    """Return a broker's registration, None if it is gone."""
    path = broker_path(broker_id)
    try:
        data, stat = await client.get(path)
    except NoNode:
        return None
    return LiveBroker(broker_node(broker_id, decode_broker(data, path), path), stat.czxid)


async def read_topic(client: ZnodeClient, topic: str) -> StoredTopic | None:
    """Return a topic's assignment, None if there is no such topic.

    Raises InvalidZnodeValue and InvalidUuid.
    """
    path = topic_path(topic)
    try:
        data, stat = await client.get(path)
    except NoNode:
        return None
    assignment = decode_topic(data, path)
    topic_id = None if assignment.topic_id is None else uuid_bytes(assignment.topic_id)
    return StoredTopic(assignment, stat.version, topic_id)


async def read_leaderships(
    client: ZnodeClient, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, PartitionLeadership]:
    """Return leader and ISR of those partitions that have a state.

    One that cannot be understood counts as none, as in Kafka: it stays what it is, and only its
    partition cannot be led.
    """
    leaderships = {}
    for partition in partitions:
        path = partition_state_path(partition)
        try:
            data, stat = await client.get(path)
            leaderships[partition] = PartitionLeadership(
                decode_partition_state(data, path), stat.version
            )
        except (NoNode, InvalidZnodeValue):
            continue
    return leaderships


def broker_node(broker_id: int, registration: BrokerRegistration, path: str) -> BrokerNode:
    """Return where a registered broker listens; raises InvalidZnodeValue."""
    endpoints = tuple(
        _endpoint(text, registration.security_protocols, path) for text in registration.endpoints
    )
    return BrokerNode(broker_id, endpoints, registration.rack)


def _endpoint(text: str, protocols: Mapping[str, str], path: str) -> Endpoint:
    listener, separator, address = text.partition("://")
    host, colon, port = address.rpartition(":")
    number = _PROTOCOL_NUMBERS.get(protocols.get(listener, ""))
    if not (separator and colon and port.isascii() and port.isdigit()) or number is None:
        raise InvalidZnodeValue(path, "an endpoint NAME://host:port of a known protocol", text)
    return Endpoint(listener, host.removeprefix("[").removesuffix("]"), int(port), number)
