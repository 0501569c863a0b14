"""Internal topics of streams groups: find those of a topology, and delete them.

Source: StreamsGroupCommand.retrieveInternalTopics, maybeDeleteInternalTopics of 4.3.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, TextIO

from engine.client.blocking import KafkaClient
from engine.client.errors import NoCommonVersion
from engine.client.streams_groups import StreamsGroup, describe_streams_group
from engine.client.topic_admin import delete_topics
from engine.errors import EngineError
from kctl.compat.group_answers import Waits, cause_text, failure
from kctl.compat.java_order import names_in_java_order
from kctl.compat.streams_groups_views import DESCRIBE_CALL, source_topics

_INTERNAL: Final = re.compile(
    r".*(-changelog|-repartition|-subscription-registration-topic|-subscription-response-topic)"
    r"|.+-KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-[0-9]+-topic"
)
_DELETE_CALL: Final = "deleteTopics"


def request_internal_topics(
    client: KafkaClient, group_ids: Iterable[str], out: TextIO, err: TextIO
) -> dict[str, list[str]]:
    """Return the internal topics by streams group, for groups that have any.

    A failure is printed, and the result is empty.
    """
    groups: list[StreamsGroup] = []
    for group_id in names_in_java_order(group_ids):
        try:
            groups.append(describe_streams_group(client, group_id))
        except NoCommonVersion as error:
            _print_unsupported(client, group_ids, out)
            err.write(f"{cause_text(error, DESCRIBE_CALL)}\n")
            return {}
        except EngineError as error:
            ended = failure(error, DESCRIBE_CALL, Waits.ONCE)
            out.write(f"\nError: Retrieving internal topics failed due to {ended}\n")
            err.write(ended.trace())
            return {}
    found = {group.group_id: _topics_to_delete(group, out) for group in groups}
    return {group_id: topics for group_id, topics in found.items() if topics}


def _topics_to_delete(group: StreamsGroup, out: TextIO) -> list[str]:
    """Return the repartition and changelog topics of a streams group, to delete with it.

    Only topics with an internal name, which starts with the group id, are returned; others are
    printed.
    """
    sources = source_topics(group, has_repartitions=False)
    internal = []
    for part in group.subtopologies or ():
        of_part = (
            *names_in_java_order(part.repartition_source_topics),
            *names_in_java_order(part.changelog_topics),
        )
        for topic in of_part:
            if topic in sources:
                continue
            if is_internal(topic, group.group_id):
                internal.append(topic)
                continue
            out.write(
                f"\nError: The internal topic '{topic}' is not inferred as internal and thus will "
                f"not be deleted with the group '{group.group_id}'.\n"
            )
    return internal


def is_internal(topic: str, group_id: str) -> bool:
    """Return True if a topic has the name of an internal topic of the group."""
    return topic.startswith(f"{group_id}-") and _INTERNAL.fullmatch(topic) is not None


def _print_unsupported(client: KafkaClient, group_ids: Iterable[str], out: TextIO) -> None:
    """Print the internal topics, found by name, so that the user can delete them."""
    names = sorted(client.view(None).topics)
    topics = [name for name in names if any(is_internal(name, group) for group in group_ids)]
    out.write(
        "\nError: Retrieving internal topics is not supported by the broker version.\n"
        f"Internal topics: ({','.join(topics)}).\n"
        "Use 'kafka-topics.sh' to delete the group's internal topics.\n"
    )


def delete_internal_topics(
    client: KafkaClient, topics: Sequence[str]
) -> tuple[list[str], EngineError | None]:
    """Delete topics; return those that were not deleted, and the first error.

    The error is None if all are deleted.
    """
    try:
        results = delete_topics(client, list(dict.fromkeys(topics)))
    except EngineError as error:
        return list(topics), error
    failed = [topic for topic in names_in_java_order(results) if results[topic] is not None]
    return failed, next((results[topic] for topic in topics if results[topic] is not None), None)


def cause_of(error: EngineError) -> str:
    """Return Java's text for a failed deletion of topics."""
    return cause_text(error, _DELETE_CALL)
