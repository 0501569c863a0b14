"""Wait until brokers return metadata of a change that the controller has made.

The controller responds when it has made a change; the other brokers, and with KRaft its own too,
get the metadata a moment later. Without a wait the next command of a script might not find it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from engine.client.blocking import KafkaClient
from engine.client.metadata import ClusterView, TopicView
from engine.kafka_errors import UNKNOWN_TOPIC_OR_PARTITION
from kctl.console import notify

_WAIT_MS = 10_000


def await_created(client: KafkaClient, names: Iterable[str]) -> None:
    """Wait until topics exist and can be used."""
    _await(client, names, _is_usable)


def await_partitions(client: KafkaClient, counts: Mapping[str, int]) -> None:
    """Wait until topics have these numbers of partitions."""
    _await(
        client,
        counts,
        lambda topic: len(topic.partitions) >= counts[topic.name] and _is_usable(topic),
    )


def await_deleted(client: KafkaClient, names: Iterable[str]) -> None:
    """Wait until topics are gone."""
    _await(client, names, lambda topic: topic.error_code == UNKNOWN_TOPIC_OR_PARTITION)


def _is_usable(topic: TopicView) -> bool:
    """Return whether all partitions of a topic have leaders: it can be written then."""
    return bool(topic.partitions) and all(partition.has_leader for partition in topic.partitions)


def _await(client: KafkaClient, names: Iterable[str], is_done: Callable[[TopicView], bool]) -> None:
    """Wait until all brokers return the change; after _WAIT_MS only note that some do not."""
    wanted = list(names)

    def late(view: ClusterView) -> list[str]:
        """Return the topics of a broker's metadata that lack the change."""
        return [name for name in wanted if name in view.topics and not is_done(view.topics[name])]

    if wanted and not client.await_view(wanted, lambda view: not late(view), _WAIT_MS):
        notify("not every broker tells of the change yet: it is made, and shows in a moment")
