"""Wait until brokers return the metadata of a completed change.

The controller responds once a change is made; the other brokers, and with KRaft the responding one
too, receive the metadata later. Without the wait the next command of a script may not see it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from engine.client.blocking import KafkaClient
from engine.client.metadata import ClusterView, TopicView
from engine.kafka_errors import UNKNOWN_TOPIC_OR_PARTITION
from kctl.console import notify

_WAIT_MS = 10_000


def await_created(client: KafkaClient, names: Iterable[str]) -> None:
    """Wait until brokers return the new topics with a leader for each partition.

    A client that uses a topic right after its creation would otherwise get an error.
    """
    _await_metadata(client, names, _is_usable)


def await_partitions(client: KafkaClient, counts: Mapping[str, int]) -> None:
    """Wait until topics have at least these numbers of partitions, each with a leader."""
    _await_metadata(
        client,
        counts,
        lambda topic: len(topic.partitions) >= counts[topic.name] and _is_usable(topic),
    )


def await_deleted(client: KafkaClient, names: Iterable[str]) -> None:
    """Wait until brokers no longer return the topics."""
    _await_metadata(client, names, lambda topic: topic.error_code == UNKNOWN_TOPIC_OR_PARTITION)


def _is_usable(topic: TopicView) -> bool:
    """Return True if every partition of the topic has a leader."""
    return bool(topic.partitions) and all(partition.has_leader for partition in topic.partitions)


def _await_metadata(
    client: KafkaClient, names: Iterable[str], is_done: Callable[[TopicView], bool]
) -> None:
    """Wait until all brokers' metadata has a change; after _WAIT_MS print a note and return.

    `is_done` returns True for a topic that has the change.
    """
    wanted = list(names)

    def late(view: ClusterView) -> list[str]:
        """Return the topics that lack the change in a broker's metadata."""
        return [name for name in wanted if name in view.topics and not is_done(view.topics[name])]

    if wanted and not client.await_view(wanted, lambda view: not late(view), _WAIT_MS):
        notify("not every broker reports the change yet: it is made, and shows in a moment")
