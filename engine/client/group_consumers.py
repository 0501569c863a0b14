"""The consumer of a group in the protocol that its settings name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.client.blocking import KafkaClient
from engine.client.consumer_heartbeat import NoConsumerProtocol, SubscriptionPattern
from engine.client.fetching import FetchOptions
from engine.client.group_consumer import AUTO_COMMIT_INTERVAL_MS, GroupConsumer, StartOf
from engine.client.group_protocol import CLASSIC, CONSUMER
from engine.client.member_session import MemberSettings
from engine.client.reconciling_consumer import ReconcilingConsumer

_PATTERN_IN_CLASSIC: Final = "patterns that brokers match, with group.protocol=classic"
_KINDS: Final[dict[str, type[GroupConsumer]]] = {
    CLASSIC: GroupConsumer,
    CONSUMER: ReconcilingConsumer,
}


def create_group_consumer(
    client: KafkaClient,
    settings: MemberSettings,
    topics: Sequence[str] | SubscriptionPattern,
    *,
    start_of: StartOf,
    fetch: FetchOptions | None = None,
    auto_commit_interval_ms: int = AUTO_COMMIT_INTERVAL_MS,
    commits: bool = True,
) -> GroupConsumer:
    """Return a group member, not joined yet, for the protocol named in `settings.group_protocol`.

    Raises SettingOfOtherProtocol; NoConsumerProtocol for a SubscriptionPattern in a classic group.
    """
    if isinstance(topics, SubscriptionPattern) and not settings.is_of_consumer_protocol:
        raise NoConsumerProtocol(_PATTERN_IN_CLASSIC)
    return _KINDS[settings.group_protocol](
        client,
        settings,
        topics,
        start_of=start_of,
        fetch=fetch,
        auto_commit_interval_ms=auto_commit_interval_ms,
        commits=commits,
    )
