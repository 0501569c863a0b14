"""Subscriptions and assignments that members of a consumer group exchange via the coordinator.

```
JoinGroup  version int16, Subscription: topics, user data, owned partitions, generation, rack
SyncGroup  version int16, Assignment: partitions by topic, user data
```

A later version may append fields that are ignored here. Empty bytes mean that no partition is
assigned.

Source: ConsumerProtocol of 3.9.1; ConsumerProtocolSubscription, ConsumerProtocolAssignment.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct as Format
from typing import Final

from engine.assignors.subscription import NO_GENERATION, Subscription
from engine.errors import WireError
from engine.model import TopicPartition, by_topic
from engine.wire import messages
from engine.wire.codec import message_codec
from engine.wire.errors import MalformedMessage

_VERSION: Final = Format(">h")
_VERSION_MAX: Final = 3
_SUBSCRIPTION: Final = "ConsumerProtocolSubscription"
_ASSIGNMENT: Final = "ConsumerProtocolAssignment"


def encode_subscription(subscription: Subscription, version: int = _VERSION_MAX) -> bytes:
    """Encode the subscription that a member sends in its JoinGroup, with its version first.

    Fields that a lower `version` does not have are omitted.
    """
    row = messages.ConsumerProtocolSubscription.TopicPartition
    message = messages.ConsumerProtocolSubscription(
        topics=sorted(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=[
            row(topic=topic, partitions=[key.partition for key in keys])
            for topic, keys in by_topic(sorted(subscription.owned_partitions)).items()
        ],
        generation_id=subscription.generation_id,
        rack_id=subscription.rack_id,
    )
    return _VERSION.pack(version) + bytes(message_codec(_SUBSCRIPTION, version).encode(message))


def decode_subscription(data: bytes, group_instance_id: str | None) -> Subscription:
    """Decode the subscription of a group member, for the leader's assignor. Raises WireError."""
    if len(data) < _VERSION.size:
        raise WireError("the subscription of a member ends early")
    codec = message_codec(_SUBSCRIPTION, _known_version(data))
    message, _ = codec.decode_at(data, _VERSION.size)
    return Subscription(
        tuple(message.topics),
        group_instance_id,
        message.rack_id or None,
        tuple(
            TopicPartition(row.topic, number)
            for row in message.owned_partitions
            for number in row.partitions
        ),
        max(message.generation_id, NO_GENERATION),
        None if message.user_data is None else bytes(message.user_data),
    )


def encode_assignment(partitions: Iterable[TopicPartition], version: int = _VERSION_MAX) -> bytes:
    """Encode the assignment that the group leader sends for one member."""
    rows = [
        messages.ConsumerProtocolAssignment.TopicPartition(
            topic=topic, partitions=[key.partition for key in of_topic]
        )
        for topic, of_topic in by_topic(sorted(partitions)).items()
    ]
    message = messages.ConsumerProtocolAssignment(assigned_partitions=rows)
    return _VERSION.pack(version) + bytes(message_codec(_ASSIGNMENT, version).encode(message))


def decode_assignment(data: bytes) -> tuple[TopicPartition, ...] | None:
    """Return the sorted partitions of a member's encoded assignment; None if it cannot be decoded.

    Empty data means no partitions.
    """
    if not data:
        return ()
    if len(data) < _VERSION.size:
        return None
    codec = message_codec(_ASSIGNMENT, _known_version(data))
    try:
        message, _ = codec.decode_at(data, _VERSION.size)
    except MalformedMessage:
        return None
    return tuple(
        sorted(
            TopicPartition(topic.topic, index)
            for topic in message.assigned_partitions
            for index in topic.partitions
        )
    )


def _known_version(data: bytes) -> int:
    """Return the version to decode by: a later version than those known is read as the latest."""
    version: int = _VERSION.unpack_from(data)[0]
    return min(max(version, 0), _VERSION_MAX)
