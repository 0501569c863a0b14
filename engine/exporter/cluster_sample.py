"""Result of one scrape of a cluster."""

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
    """A request of a scrape without a usable response."""

    broker_id: int
    api_name: str
    error: EngineError


class GroupSample(NamedTuple):
    """A group: its listing, and its members and commits if its coordinator has responded."""

    listing: GroupListing
    description: GroupDescription | None
    commits: Mapping[TopicPartition, CommitView]


class ClusterSample(NamedTuple):
    """A cluster at one moment; parts without a response are left out, with a failure.

    `moves` is None where the controller did not say them.
    """

    view: ClusterView
    log_dirs: Mapping[int, list[LogDirView]]
    low_watermarks: Mapping[TopicPartition, int]
    high_watermarks: Mapping[TopicPartition, int]
    moves: Mapping[TopicPartition, OngoingReassignment] | None
    groups: tuple[GroupSample, ...]
    cleanup_policies: Mapping[str, str]
    failures: tuple[RequestFailure, ...]
    #: Brokers that answered nothing.
    silent: frozenset[int]
    #: min.insync.replicas by topic, where settings of topics were asked for.
    min_isr: Mapping[str, int] = MappingProxyType({})
