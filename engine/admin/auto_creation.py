"""Automatic creation of topics when a client requests their metadata.

| topic | partitions, replicas, settings |
|---|---|
| `__consumer_offsets` | `offsets.topic.*`; compacted, compression of the producer |
| `__transaction_state` | `transaction.state.log.*`; compacted, uncompressed, no unclean leader |
| other topics | `num.partitions`, `default.replication.factor` |

No request waits for leaders: the response for a created topic is LEADER_NOT_AVAILABLE, and the
client retries. During the creation other requests get UNKNOWN_TOPIC_OR_PARTITION.

Source: DefaultAutoTopicCreationManager; `formats.md` §7.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.admin.topic_admin import TopicAdmin
from engine.admin.topic_results import TopicResult
from engine.admin.topic_rules import CreatableTopic, is_name
from engine.config.broker_config import BrokerConfig
from engine.kafka_errors import (
    INVALID_TOPIC_EXCEPTION,
    LEADER_NOT_AVAILABLE,
    REQUEST_TIMED_OUT,
    TOPIC_ALREADY_EXISTS,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from engine.naming import CONSUMER_OFFSETS, TRANSACTION_STATE


def automatic_topic(topic: str, config: BrokerConfig) -> CreatableTopic:
    """Return the request for a topic that is created automatically.

    Internal topics have their own counts and settings; any other topic the broker's defaults.
    """
    if topic == CONSUMER_OFFSETS:
        return CreatableTopic(
            topic,
            config.offsets_topic_num_partitions,
            config.offsets_topic_replication_factor,
            configs=(
                ("cleanup.policy", "compact"),
                ("compression.type", "producer"),
                ("segment.bytes", str(config.offsets_topic_segment_bytes)),
            ),
        )
    if topic == TRANSACTION_STATE:
        return CreatableTopic(
            topic,
            config.transaction_state_log_num_partitions,
            config.transaction_state_log_replication_factor,
            configs=(
                ("unclean.leader.election.enable", "false"),
                ("compression.type", "uncompressed"),
                ("cleanup.policy", "compact"),
                ("min.insync.replicas", str(config.transaction_state_log_min_isr)),
                ("segment.bytes", str(config.transaction_state_log_segment_bytes)),
            ),
        )
    return CreatableTopic(topic, config.num_partitions, config.default_replication_factor)


class AutoCreation:
    """Creates topics automatically, on the broker that is the controller."""

    def __init__(self, config: BrokerConfig, admin: TopicAdmin) -> None:
        self._config = config
        self._admin = admin
        self._in_flight: set[str] = set()

    async def auto_create(self, topics: Iterable[str]) -> dict[str, int]:
        """Create topics that the metadata does not have; return the error code of each.

        A created topic has LEADER_NOT_AVAILABLE: the client asks for metadata again. Topics that
        another call is creating now have UNKNOWN_TOPIC_OR_PARTITION.
        """
        codes: dict[str, int] = {}
        new = []
        for topic in dict.fromkeys(topics):
            if not is_name(topic):
                codes[topic] = INVALID_TOPIC_EXCEPTION
            elif topic in self._in_flight:
                codes[topic] = UNKNOWN_TOPIC_OR_PARTITION
            else:
                new.append(topic)
        if not new:
            return codes
        self._in_flight.update(new)
        try:
            # A time-out of 0: no wait for leaders.
            results = await self._admin.create_topics(
                [automatic_topic(topic, self._config) for topic in new],
                timeout_ms=0,
                describe=False,
            )
        finally:
            self._in_flight.difference_update(new)
        return {**codes, **{name: _metadata_code(result) for name, result in results.items()}}


def _metadata_code(result: TopicResult) -> int:
    """Return the code of a topic for the metadata response: LEADER_NOT_AVAILABLE if it exists now.

    Otherwise it is the error of the creation.
    """
    # With a time-out of 0, REQUEST_TIMED_OUT means that the topic was created.
    if result.code in (TOPIC_ALREADY_EXISTS, REQUEST_TIMED_OUT):
        return LEADER_NOT_AVAILABLE
    return result.code
