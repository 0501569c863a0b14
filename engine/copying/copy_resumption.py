"""Where a copy is resumed: the destination's progress, checked against the journal.

| known position | the journal's | records at the destination | resumed |
|---|---|---|---|
| any | any | never had any: the topic was created again | at the start |
| any | the end | | at the end: it is complete |
| equal to the journal's, or later | | | at the known one |
| none, or before the journal's | | some | not: an error, since records would be copied twice |

The last row is a group whose offsets were deleted, or have expired: a coordinator removes those of
a group without members after offsets.retention.minutes.

Source: KIP-211; GroupMetadata.removeExpiredOffsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engine.client.blocking import KafkaClient
from engine.client.offsets import LATEST, list_offsets
from engine.copying.copy_plan import TopicCopy
from engine.errors import ApiError, EngineError
from engine.kafka_errors import UNKNOWN_TOPIC_OR_PARTITION
from engine.model import TopicPartition


class ProgressLost(EngineError):
    """The destination has lost the progress of a partition."""

    hint = (
        "a coordinator forgets offsets after offsets.retention.minutes: begin another copy, with "
        "another --journal and --prefix, or after what is there, with --append and --from"
    )

    def __init__(self, partition: TopicPartition, group_id: str) -> None:
        super().__init__(
            f"the group {group_id} at the destination has lost how far {partition} is copied"
        )
        self.partition = partition
        self.group_id = group_id


def find_resume_positions(
    client: KafkaClient,
    plan: TopicCopy,
    known: Mapping[TopicPartition, int],
    noted: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """Return the next offset to copy of each source partition, when a copy is resumed.

    `known` are the authoritative positions, `noted` those in the journal; both by source partition.
    A partition whose destination is empty starts again. Errors: ProgressLost if a known position is
    below a noted one within the range, those of the requests.
    """
    ranges = plan.ranges
    begun = [
        key
        for key, found in ranges.items()
        if max(known.get(key, -1), noted.get(key, -1)) > found.start
    ]
    empty = find_never_written(client, plan, begun)
    positions = {key: found.start for key, found in ranges.items()}
    for key in begun:
        if key in empty:
            continue
        known_offset, noted_offset = known.get(key, -1), noted.get(key, -1)
        if noted_offset < ranges[key].end and known_offset < noted_offset:
            raise ProgressLost(key, plan.name)
        positions[key] = max(known_offset, noted_offset)
    return positions


def find_never_written(
    client: KafkaClient, plan: TopicCopy, keys: Iterable[TopicPartition]
) -> set[TopicPartition]:
    """Return the source partitions whose destination never had a record, or does not exist.

    It never had one if its log end offset is 0. `keys` are the source partitions to look up.
    """
    to = plan.destinations()
    there = {to[key]: key for key in keys}
    empty = set()
    for partition, found in list_offsets(client, dict.fromkeys(there, LATEST)).items():
        if isinstance(found, ApiError) and found.code == UNKNOWN_TOPIC_OR_PARTITION:
            empty.add(there[partition])
        elif isinstance(found, EngineError):
            raise found
        elif found.offset == 0:
            empty.add(there[partition])
    return empty
