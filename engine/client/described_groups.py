"""Describe one group of a type that has a request of its own: share and streams groups."""

from __future__ import annotations

from engine.client.blocking import KafkaClient
from engine.errors import api_error
from engine.kafka_errors import NONE
from engine.wire.schema import Release
from engine.wire.structs import Message, message_class


def request_description(
    client: KafkaClient, api_name: str, group_id: str, release: Release
) -> Message:
    """Return the description of one group from its coordinator, by the API for its type.

    Raises ApiError GROUP_ID_NOT_FOUND, also for a group of another type, and NoCommonVersion.
    """
    response = client.send_to_coordinator(
        group_id,
        api_name,
        message_class(f"{api_name}Request", release)(group_ids=[group_id]),
        retriable_code=lambda message: message.groups[0].error_code,
        release=release,
    )
    (row,) = response.message.groups
    if row.error_code != NONE:
        raise api_error(row.error_code, row.error_message)
    found: Message = row
    return found
