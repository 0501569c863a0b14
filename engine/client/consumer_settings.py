"""Settings of a consumer, by the names and defaults of Kafka's consumer."""

from __future__ import annotations

from typing import Final, NamedTuple

from engine.client.fetching import FetchOptions
from engine.client.group_consumer import AUTO_COMMIT_INTERVAL_MS
from engine.client.member_session import MemberSettings

#: How long `close` takes at most. Source: ConsumerUtils.DEFAULT_CLOSE_TIMEOUT_MS of 3.9.1.
CLOSE_TIMEOUT_MS: Final = 30_000


class ConsumerSettings(NamedTuple):
    """Settings of a consumer; the names and defaults are those of Kafka's consumer.

    With `member` None there is no group: nothing is committed, and `subscribe` fails.
    """

    member: MemberSettings | None = None
    auto_offset_reset: str = "latest"
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = AUTO_COMMIT_INTERVAL_MS
    max_poll_records: int = 500
    metadata_max_age_ms: int = 300_000
    fetch: FetchOptions = FetchOptions()
