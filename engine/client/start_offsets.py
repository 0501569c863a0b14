"""Start offsets of a consumer: the committed offset, else that of `auto_offset_reset`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from engine.client.blocking import KafkaClient
from engine.client.consumer_settings import ConsumerSettings
from engine.client.groups import committed_offsets
from engine.client.offsets import EARLIEST, LATEST, FoundOffset, list_offsets
from engine.errors import EngineError
from engine.model import TopicPartition

_RESETS: Final = {"earliest": EARLIEST, "latest": LATEST}


class NoOffset(EngineError):
    """A partition has no offset to begin at, and `auto_offset_reset` is none."""

    hint = "commit or seek to an offset first, or set auto.offset.reset to earliest or latest"

    def __init__(self, partition: TopicPartition) -> None:
        super().__init__(f"{partition.topic}-{partition.partition} has no offset to begin at")
        self.partition = partition


class UnknownReset(EngineError):
    """`auto_offset_reset` is not `earliest`, `latest` or `none`."""

    def __init__(self, value: str) -> None:
        super().__init__(f"auto.offset.reset is earliest, latest or none, not {value}")
        self.value = value


class StartOffsets:
    """Finds the offsets at which one consumer begins."""

    def __init__(self, client: KafkaClient, settings: ConsumerSettings) -> None:
        """Create for one consumer. Raises UnknownReset."""
        if settings.auto_offset_reset not in (*_RESETS, "none"):
            raise UnknownReset(settings.auto_offset_reset)
        self._client = client
        self._settings = settings

    def find(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offset from which to read each partition.

        It is the committed offset, else that of auto.offset.reset. Raises the error of the first
        partition whose offset cannot be found.
        """
        starts: dict[TopicPartition, int] = {}
        if self._settings.member is not None and partitions:
            committed = committed_offsets(self._client, self._settings.member.group_id, partitions)
            starts = {key: committed[key] for key in partitions if key in committed}
        left = [key for key in partitions if key not in starts]
        for key, offset in (self.find_by_reset(left) if left else {}).items():
            if isinstance(offset, EngineError):
                raise offset
            starts[key] = offset
        return starts

    def find_by_reset(
        self, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, int | EngineError]:
        """Return the offset of each partition by auto.offset.reset, or its error.

        With `none` the error is NoOffset.
        """
        timestamp = _RESETS.get(self._settings.auto_offset_reset)
        if timestamp is None:
            return {key: NoOffset(key) for key in partitions}
        return self.at(partitions, timestamp)

    def at(
        self, partitions: Iterable[TopicPartition], timestamp: int
    ) -> dict[TopicPartition, int | EngineError]:
        """Return the offset of each partition at EARLIEST or LATEST, or the partition's error.

        For a read_committed consumer, LATEST is the last stable offset.
        """
        committed = self._settings.fetch.read_committed
        rows = list_offsets(
            self._client, dict.fromkeys(partitions, timestamp), read_committed=committed
        )
        return {
            key: row.offset if isinstance(row, FoundOffset) else row for key, row in rows.items()
        }
