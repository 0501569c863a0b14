"""A follower's fetch at a local leader: the values of Fetch, without its bytes.

A request names all partitions, for nothing is saved by leaving something out of a call; an answer
has those that have changed. Records are read once, into the bytes that the follower appends.

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
    """A follower's fetch at its leader; logs without an id are left out of `topic_ids`.

    `session` is that of the last response, None for a first request. `give` takes records of one
    partition while the fetch waits; without it that ends the wait.
    """

    params: FetchParams
    specs: Mapping[TopicPartition, FetchSpec]
    topic_ids: Mapping[TopicPartition, bytes]
    session: LocalSession | None = None
    give: Give | None = None


class LocalFetched(NamedTuple):
    """The leader's response for the partitions that have changed, and the session after that."""

    answers: list[tuple[TopicPartition, PartitionResponse]]
    session: LocalSession
