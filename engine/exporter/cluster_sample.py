"""The result of a scrape of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from engine.client.cluster_admin import LogDirView
from engine.client.groups import CommitView, GroupDescription, GroupListing
from engine.client.metadata import ClusterView
from engine.client.reassignments import OngoingReassignment
from engine.errors import EngineError
from engine.model import TopicPartition


class RequestFailure(NamedTuple):
    """A request of a scrape that got no usable response."""

    broker_id: int
    api_name: str
    error: EngineError


class GroupSample(NamedTuple):
    """A group: its listing, and what its coordinator returned of members and commits.

    `description` is None without a response.
    """

    listing: GroupListing
    description: GroupDescription | None
    commits: Mapping[TopicPartition, CommitView]


class ClusterSample(NamedTuple):
    """A cluster at one moment; for parts without a response there is a failure instead.

    `moves` is None if the controller did not return them.
    """

    view: ClusterView
    log_dirs: Mapping[int, list[LogDirView]]
    low_watermarks: Mapping[TopicPartition, int]
    high_watermarks: Mapping[TopicPartition, int]
    moves: Mapping[TopicPartition, OngoingReassignment] | None
    groups: tuple[GroupSample, ...]
    cleanup_policies: Mapping[str, str]
    failures: tuple[RequestFailure, ...]
    #: Brokers without any response.
    silent: frozenset[int]
    #: min.insync.replicas by topic, if settings of topics were requested.
    min_isr: Mapping[str, int] = MappingProxyType({})
