"""The splits that each view reads.

| view | one piece for each | topics |
|---|---|---|
| records, batches | split | all |
| replicas | split, also of replicas that other views do not read | all |
| segments, indexes | segment | all |
| checkpoints, epochs, producers | partition | all |
| transactions | split | all, for the markers |
| offsets, groups | split | `__consumer_offsets` |
| metadata | split | `__cluster_metadata` |
"""

from __future__ import annotations

from engine.analysis.splits import Split, whole_segments
from engine.naming import CLUSTER_METADATA_TOPIC

#: Internal topics of the coordinators.
GROUP_OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"

_OF_SEGMENTS = frozenset(("segments", "indexes"))
_OF_PARTITIONS = frozenset(("checkpoints", "epochs", "producers"))
_TOPICS = {
    "offsets": GROUP_OFFSETS_TOPIC,
    "groups": GROUP_OFFSETS_TOPIC,
    "metadata": CLUSTER_METADATA_TOPIC,
}
#: Views whose columns `topic` and `partition` name the log that is read.
OF_THE_LOG = frozenset(("records", "batches", "replicas", *_OF_SEGMENTS, *_OF_PARTITIONS))


def pieces_of(view: str, splits: list[Split]) -> list[Split]:
    """Return the splits from which a view is read.

    They are those of its topic, or one for each segment or partition if a view has rows of these.
    Only `replicas` reads spare ones.
    """
    if view == "replicas":
        return splits
    splits = [split for split in splits if not split.is_spare]
    if view in _OF_SEGMENTS:
        return whole_segments(splits)
    if view in _OF_PARTITIONS:
        return list({(s.dir, s.topic, s.partition): s for s in reversed(splits)}.values())[::-1]
    topic = _TOPICS.get(view)
    return splits if topic is None else [split for split in splits if split.topic == topic]
