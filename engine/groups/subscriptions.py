"""The topics that the members of a consumer group subscribe to.

Source: ConsumerProtocol; GroupMetadata.computeSubscribedTopics of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from engine.wire.codec import message_codec
from engine.wire.errors import MalformedMessage

#: The protocol type of consumers; Kafka Connect, for instance, has a different one.
CONSUMER_PROTOCOL_TYPE: Final = "consumer"

_VERSION_BYTES: Final = 2


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """Return the topics of all subscriptions, None if a subscription cannot be parsed.

    Every version is parsed as version 0, with which all later versions begin.
    """
    codec = message_codec("ConsumerProtocolSubscription", 0)
    topics: set[str] = set()
    for subscription in subscriptions:
        if len(subscription) < _VERSION_BYTES:
            return None
        try:
            message, _ = codec.decode_at(subscription, _VERSION_BYTES)
            topics.update(message.topics)
        except MalformedMessage:
            return None
    return frozenset(topics)
