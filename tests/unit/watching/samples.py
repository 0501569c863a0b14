"""Samples of clusters as plain values, for the rules that compare them."""

from __future__ import annotations

from collections.abc import Mapping

from engine.client.cluster_admin import LogDirView, ReplicaSize
from engine.client.groups import CommitView, GroupDescription, GroupListing, MemberView
from engine.client.metadata import BrokerView, ClusterView, PartitionView, TopicView
from engine.client.reassignments import OngoingReassignment
from engine.client.settings import Address
from engine.exporter.cluster_sample import ClusterSample, GroupSample
from engine.model import TopicPartition
from engine.watching.timed_sample import TimedSample

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
WALL_MS = 1_700_000_000_000


def row(
    partition: int = 0,
    replicas: tuple[int, ...] = (1, 2),
    isr: tuple[int, ...] | None = None,
    leader: int | None = None,
) -> PartitionView:
    leader = replicas[0] if leader is None else leader
    return PartitionView(partition, leader, 0, replicas, replicas if isr is None else isr, ())


def view(
    *rows: PartitionView,
    racks: Mapping[int, str | None] | None = None,
    controller_id: int = 1,
) -> ClusterView:
    """Return a cluster with topic t; brokers 1 and 2 if no racks are named."""
    racks = {1: None, 2: None} if racks is None else racks
    brokers = {id_: BrokerView(id_, Address(f"b{id_}", 9092), rack) for id_, rack in racks.items()}
    topic = TopicView("t", bytes(15) + b"t", False, rows or (row(0), row(1, (2, 1))))
    return ClusterView("c", controller_id, brokers, {"t": topic})


def log_dir(sizes: Mapping[TopicPartition, int], usable_bytes: int | None = None) -> LogDirView:
    replicas = tuple(ReplicaSize(key, size, 0, False) for key, size in sizes.items())
    return LogDirView("/d", None, replicas, None, usable_bytes)


def group(
    name: str = "g",
    commits: Mapping[TopicPartition, int] | None = None,
    owned: tuple[TopicPartition, ...] | None = None,
) -> GroupSample:
    """Return a group; with `owned` it has a member that has these partitions."""
    members = () if owned is None else (MemberView("m", None, "client", "/h", owned),)
    description = GroupDescription(name, "Stable" if members else "Empty", "consumer", "", members)
    listing = GroupListing(name, "consumer", description.state, "classic", 1)
    views = {key: CommitView(offset, -1, "") for key, offset in (commits or {}).items()}
    return GroupSample(listing, description, views)


def sample(
    at_ms: int = 0,
    *,
    cluster: ClusterView | None = None,
    ends: Mapping[TopicPartition, int] | None = None,
    starts: Mapping[TopicPartition, int] | None = None,
    sizes: Mapping[int, Mapping[TopicPartition, int]] | None = None,
    groups: tuple[GroupSample, ...] = (),
    moves: Mapping[TopicPartition, OngoingReassignment] | None = None,
    min_isr: Mapping[str, int] | None = None,
    silent: frozenset[int] = frozenset(),
) -> TimedSample:
    ends = {T0: 0, T1: 0} if ends is None else ends
    found = ClusterSample(
        cluster or view(),
        {id_: [log_dir(of_broker)] for id_, of_broker in (sizes or {}).items()},
        dict.fromkeys(ends, 0) if starts is None else starts,
        ends,
        moves if moves is not None else {},
        groups,
        {},
        (),
        silent,
        min_isr or {},
    )
    return TimedSample(found, at_ms, WALL_MS + at_ms)
