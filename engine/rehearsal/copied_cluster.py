"""Design a small copy of a cluster, to try a plan on; it has only a little of the data. Pure.

Brokers of the copy are numbered from 1; reports use the ids of the cluster. Sizes are scaled so
that all replicas together have a given number of bytes; every partition with data keeps a minimum.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from engine.client.topic_admin import NewTopic
from engine.model import TopicPartition
from engine.planner.cluster_model import ClusterModel
from engine.planner.plan import PartitionChange
from engine.reassign.throttles import LISTS

#: Lowest broker id of an embedded cluster.
_FIRST_ID: Final = 1
#: Minimum size in the copy of a replica that has data.
_LEAST_BYTES: Final = 1000


#: Prefixes of settings that are not copied. The copy's records are new, and are kept during the
#: rehearsal; they have a size of their own, are not compressed, and not in remote storage.
_LEFT_OUT: Final = (
    *LISTS,
    "compression.",
    "local.retention.",
    "message.format.version",
    "message.timestamp.",
    "remote.",
    "retention.",
)
#: Minimum of settings with which the copy's records can be written.
_AT_LEAST: Final = {"max.message.bytes": 1 << 20, "segment.bytes": 1 << 20}


class CopiedCluster(NamedTuple):
    """A copy: `ids` maps the cluster's broker ids to the copy's; `racks` are in the copy's order.

    `size_bytes` are the sizes of one replica each. `dead` are brokers of the copy that stand for
    dead brokers of the cluster.
    """

    ids: dict[int, int]
    racks: tuple[str, ...]
    topics: list[NewTopic]
    size_bytes: dict[TopicPartition, int]
    dead: tuple[int, ...]

    def original(self, broker_id: int) -> int:
        """Return the id that a broker of the copy has in the cluster."""
        return next(id_ for id_, copy in self.ids.items() if copy == broker_id)

    def convert_change(self, change: PartitionChange) -> PartitionChange:
        """Return a change of the cluster as a change of the copy, without log directories."""
        ids = self.ids
        leader = change.old_leader
        return change._replace(
            old_replicas=tuple(ids[id_] for id_ in change.old_replicas),
            new_replicas=tuple(ids[id_] for id_ in change.new_replicas),
            old_leader=None if leader is None else ids.get(leader),
            new_leader=ids[change.new_leader],
            size_bytes=self.size_bytes.get(change.name, 0),
            old_sizes=(),
            old_log_dirs=(),
            new_log_dirs=(),
        )


def plan_copy(
    model: ClusterModel,
    configs: Mapping[str, Mapping[str, str]],
    more_brokers: Collection[int],
    total_bytes: int,
) -> CopiedCluster:
    """Return the plan of a cluster's copy, whose replicas have about `total_bytes` together.

    `configs` are the settings by topic; `more_brokers` are brokers that only the plan of moves
    names.
    """
    known = {broker.broker_id: broker for broker in model.brokers}
    brokers = sorted({*known, *more_brokers})
    ids = {broker_id: number for number, broker_id in enumerate(brokers, _FIRST_ID)}
    racks = [known[id_].rack if id_ in known else None for id_ in brokers]
    has_racks = any(rack is not None for rack in racks)
    dead = tuple(ids[b.broker_id] for b in model.brokers if not b.is_alive)
    return CopiedCluster(
        ids,
        tuple(rack or "none" for rack in racks) if has_racks else (),
        list(_topics_to_create(model, configs, ids)),
        _replica_sizes(model, total_bytes),
        dead,
    )


def _topics_to_create(
    model: ClusterModel, configs: Mapping[str, Mapping[str, str]], ids: Mapping[int, int]
) -> Iterable[NewTopic]:
    """Yield the topics to create, with the original replicas and without `_LEFT_OUT` settings.

    `ids` are the ids of the copy's brokers by the original ones.
    """
    by_topic: dict[str, dict[int, tuple[int, ...]]] = {}
    for partition in model.partitions:
        # The leader must be first: a new topic is led by its first replica.
        replicas = partition.replicas
        by_topic.setdefault(partition.topic, {})[partition.partition] = tuple(
            ids[id_] for id_ in replicas
        )
    for name, assignment in sorted(by_topic.items()):
        kept = {
            key: _large_enough(key, text)
            for key, text in configs.get(name, {}).items()
            if not key.startswith(_LEFT_OUT)
        }
        replicas_in_order = tuple(assignment[number] for number in sorted(assignment))
        yield NewTopic(name, assignment=replicas_in_order, configs=kept)


def _large_enough(key: str, text: str) -> str:
    """Return a setting's value, raised to the minimum that the copy's records need."""
    least = _AT_LEAST.get(key)
    return text if least is None or int(text) >= least else str(least)


def _replica_sizes(model: ClusterModel, total_bytes: int) -> dict[TopicPartition, int]:
    """Return the size of each partition's replicas; all replicas together have `total_bytes`.

    Small partitions are larger than their share.
    """
    whole = sum(partition.size_bytes * len(partition.replicas) for partition in model.partitions)
    share = min(1.0, total_bytes / whole) if whole else 0.0
    return {
        partition.name: max(_LEAST_BYTES, round(partition.size_bytes * share))
        for partition in model.partitions
        if partition.size_bytes
    }
