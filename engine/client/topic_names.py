"""Request topic names by id: assignments of the consumer protocol have only ids."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from engine.client.blocking import KafkaClient
from engine.kafka_errors import NONE
from engine.wire import messages

#: The first version that takes ids without names. Source: MetadataRequest of 3.9.1.
_FIRST_VERSION_OF_IDS: Final = 12


def request_topic_names(client: KafkaClient, topic_ids: Iterable[bytes]) -> dict[bytes, str]:
    """Return the names of topics by id; ids that the cluster does not know are left out.

    Raises the errors of the request.
    """
    of = messages.MetadataRequest
    rows = [of.MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in topic_ids]
    response = client.send(
        "Metadata",
        of(topics=rows, allow_auto_topic_creation=False),
        lowest=_FIRST_VERSION_OF_IDS,
    )
    return {
        row.topic_id: row.name
        for row in response.message.topics
        if row.error_code == NONE and row.name is not None
    }
