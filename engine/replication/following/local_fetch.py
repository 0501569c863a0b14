"""A follower's fetch at a local leader: Fetch request and response as values, without encoding.

A request has all partitions, since leaving some out saves nothing in a call; a response has the
partitions that have changed. Records are read once, into the bytes that the follower appends.

Source: D8, D12, D27; Kafka's LocalLeaderEndPoint does the same for a broker that follows itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from engine.model import TopicPartition
from engine.replication.follower_encoders import Give
from engine.replication.follower_session import LocalSession
from engine.replication.following.fetch_state import PartitionResponse
from engine.replication.partition_types import FetchParams, FetchSpec


class LocalFetch(NamedTuple):
    """A follower's request; partitions of logs without an id are not in `topic_ids`.

    `session` is the session of the last response, None in a first request. `give` receives records
    of one partition while the fetch is parked; without it records end the fetch.
    """

    params: FetchParams
    specs: Mapping[TopicPartition, FetchSpec]
    topic_ids: Mapping[TopicPartition, bytes]
    session: LocalSession | None = None
    give: Give | None = None


class LocalFetched(NamedTuple):
    """The response: the partitions that have changed, and the session."""

    answers: list[tuple[TopicPartition, PartitionResponse]]
    session: LocalSession
