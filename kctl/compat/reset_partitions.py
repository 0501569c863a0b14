"""The partitions that `--topic` selects for `--reset-offsets`, and the check that they exist.

Source: ConsumerGroupCommand.parseTopicPartitionsToReset of 3.9.1; OffsetsUtils of 4.3.0.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from engine.client.blocking import KafkaClient
from engine.errors import EngineError
from engine.model import TopicPartition
from kctl.compat.group_answers import Waits, failure, request_topic_partitions
from kctl.compat.groups_changes import parse_partitions
from kctl.compat.java_admin import admin_failure
from kctl.compat.java_failures import ToolFailure
from kctl.compat.releases import Release

_ERRORS: Final = "org.apache.kafka.common.errors"


def request_named_partitions(
    client: KafkaClient, topics: Sequence[str], release: Release
) -> list[TopicPartition]:
    """Return the partitions that --topic names: all of `TOPIC`, or those of `TOPIC:0,1`.

    Errors: ToolFailure.
    """
    named = [key for topic in topics if ":" in topic for key in parse_partitions(topic)]
    try:
        whole = request_topic_partitions(client, [name for name in topics if ":" not in name])
    except EngineError as error:
        raise failure(error, "describeTopics", Waits.TWICE) from error
    for found in whole.values():
        if isinstance(found, EngineError):
            if release.is_four:
                raise admin_failure(found, "describeTopics")
            raise failure(found, "describeTopics", Waits.TWICE)
        named += found
    return named


def check_partitions(client: KafkaClient, partitions: Collection[TopicPartition]) -> None:
    """Raise ToolFailure unless the partitions to reset exist. Source: 4.3.0."""
    if not partitions:
        return
    topics = sorted({key.topic for key in partitions})
    found = request_topic_partitions(client, topics)
    there: set[TopicPartition] = set()
    for of_topic in found.values():
        if isinstance(of_topic, EngineError):
            raise failure(of_topic, "describeTopics", Waits.TWICE)
        there.update(of_topic)
    missing = ",".join(str(key) for key in partitions if key not in there)
    if missing:
        message = f'The partitions "{missing}" do not exist'
        raise ToolFailure(f"{_ERRORS}.UnknownTopicOrPartitionException", message)
