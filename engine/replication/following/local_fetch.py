"""A follower's fetch at a local leader: the values of Fetch, without its bytes.

There is no session, for nothing is saved by leaving something out of a call; and records are read
once, into the bytes that the follower appends.

Source: D8, D12; Kafka's LocalLeaderEndPoint does the same for a broker that follows itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from engine.model import TopicPartition
from engine.replication.following.fetch_state import LeaderAnswer
from engine.replication.parked_fetch import Give
from engine.replication.partition_types import FetchParams, FetchSpec


class LocalFetch(NamedTuple):
    """What a follower asks its leader; topics that have no id are left out of `topic_ids`.

    `give` takes what comes of one partition while the fetch waits; without it that ends the wait.
    """

    params: FetchParams
    specs: Mapping[TopicPartition, FetchSpec]
    topic_ids: Mapping[str, bytes]
    give: Give | None = None


class LocalFetched(NamedTuple):
    """What the leader answers, partition by partition."""

    answers: list[tuple[TopicPartition, LeaderAnswer]]
