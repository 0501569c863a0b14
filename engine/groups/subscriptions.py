"""The topics that the members of a consumer group subscribe to.

Source: ConsumerProtocol; GroupMetadata.computeSubscribedTopics of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct as Format
from typing import Final

from engine.wire.codec import message_codec
from engine.wire.errors import MalformedMessage

#: The protocol type of consumers; Kafka Connect and others have different ones.
CONSUMER_PROTOCOL_TYPE: Final = "consumer"

_VERSION: Final = Format(">h")
_VERSION_MAX: Final = 3


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """Return the topics of all subscriptions, None if one of them cannot be read."""
    topics: set[str] = set()
    for subscription in subscriptions:
        if len(subscription) < _VERSION.size:
            return None
        (version,) = _VERSION.unpack_from(subscription)
        if version < 0:
            return None
        codec = message_codec("ConsumerProtocolSubscription", min(version, _VERSION_MAX))
        try:
            # A later version may go on with fields that this one does not know.
            message, _ = codec.decode_at(subscription, _VERSION.size)
            topics.update(message.topics)
        except MalformedMessage:
            return None
    return frozenset(topics)
