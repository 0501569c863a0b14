"""Consumers configured by Java's properties: of given partitions, or in a group.

| property | here |
|---|---|
| `auto.offset.reset`, `isolation.level` | as in Java |
| `enable.auto.commit`, `auto.commit.interval.ms` | as in Java |
| `fetch.max.bytes`, `fetch.max.wait.ms`, `max.partition.fetch.bytes` | as in Java |
| `group.instance.id`, `session.timeout.ms`, `heartbeat.interval.ms` | as in Java |
| `max.poll.interval.ms` | as in Java |
| `partition.assignment.strategy`, `client.rack`, `metadata.max.age.ms` | as in Java |
| `group.protocol`, `group.remote.assignor` | as in Java |

Other properties have no effect. An offset that is out of range is reset by `auto.offset.reset`; a
partition that does not exist is requested again.

Source: KafkaConsumer, OffsetFetcher.resetPositionsIfNeeded of 3.9.1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from engine.client.blocking import KafkaClient
from engine.client.fetching import ConsumedRecords, Fetcher, FetchOptions
from engine.client.group_consumers import create_group_consumer
from engine.client.group_protocol import CLASSIC, SettingOfOtherProtocol
from engine.client.member_session import MemberSettings
from engine.client.metadata import topic_failure
from engine.client.offsets import EARLIEST, LATEST, list_offsets
from engine.client.truncation import LogTruncated
from engine.errors import ApiError, EngineError
from engine.kafka_errors import INVALID_TOPIC_EXCEPTION, OFFSET_OUT_OF_RANGE, kafka_error
from engine.model import TopicPartition
from engine.naming import InvalidTopicName, validate_topic
from kctl.arguments import UnreadableArgument
from kctl.commands.consume.settings import commit_interval_ms, fetch_options, group_settings
from kctl.compat.java_admin import ILLEGAL_ARGUMENT
from kctl.compat.java_failures import ToolFailure, java_class
from kctl.compat.java_producer import CONFIG_EXCEPTION, config_refused

_RESETS: Final = {"earliest": EARLIEST, "latest": LATEST, "none": None}
_LEVELS: Final = ("read_committed", "read_uncommitted")
_INTERNAL_TOPICS: Final = ("__consumer_offsets", "__transaction_state", "__share_group_state")
_NO_OFFSET: Final = "org.apache.kafka.clients.consumer.NoOffsetForPartitionException"
_OUT_OF_RANGE: Final = "org.apache.kafka.clients.consumer.OffsetOutOfRangeException"
_METADATA_MAX_AGE_MS: Final = 300_000


class ConsumerSettings(NamedTuple):
    """Settings of a consumer; `reset` is EARLIEST, LATEST, or None for auto.offset.reset=none."""

    reset: int | None
    fetch: FetchOptions
    member: MemberSettings
    commits: bool
    commit_interval_ms: int


def consumer_settings(group_id: str, properties: Mapping[str, str]) -> ConsumerSettings:
    """Return the settings that a Java consumer with these properties has.

    Errors: ToolFailure for a value that Java's client refuses.
    """
    reset = properties.get("auto.offset.reset", "latest")
    if reset not in _RESETS:
        raise config_refused(
            reset, "auto.offset.reset", "String must be one of: latest, earliest, none"
        )
    level = properties.get("isolation.level", "read_uncommitted")
    if level not in _LEVELS:
        raise config_refused(
            level, "isolation.level", f"String must be one of: {', '.join(_LEVELS)}"
        )
    named = dict(properties)
    if properties.get("group.protocol", CLASSIC).lower() == CLASSIC:
        named.setdefault("partition.assignment.strategy", "range")
    try:
        settings = ConsumerSettings(
            _RESETS[reset],
            fetch_options(named, read_committed=None),
            group_settings(group_id, named),
            properties.get("enable.auto.commit", "true").lower() == "true",
            commit_interval_ms(named),
        )
    except (UnreadableArgument, SettingOfOtherProtocol) as error:
        raise ToolFailure(CONFIG_EXCEPTION, str(error)) from error
    _check_heartbeat(settings.member)
    return settings


def _check_heartbeat(member: MemberSettings) -> None:
    """Raise ToolFailure unless heartbeat.interval.ms is below session.timeout.ms.

    Java's client checks that for a group of the classic protocol only.
    """
    has_coordinator = bool(member.group_id) and member.group_protocol == CLASSIC
    if has_coordinator and member.heartbeat_interval_ms >= member.session_timeout_ms:
        raise ToolFailure(
            "org.apache.kafka.common.KafkaException",
            "Failed to construct kafka consumer",
            f"{ILLEGAL_ARGUMENT}: Heartbeat must be set lower than the session timeout",
        )


class Source(Protocol):
    """A source of records for the console consumer and the performance test."""

    def poll(self, timeout_ms: int) -> list[ConsumedRecords]:
        """Return arrived records, waiting for up to `timeout_ms`.

        Errors: ToolFailure, ApiError, Unreachable.
        """
        ...

    def set_processed(self, partition: TopicPartition, next_offset: int) -> None:
        """Limit what is committed: of the last poll only records below `next_offset` were used."""
        ...

    def close(self) -> None:
        """Commit the offsets of used records, and leave the group, if there is one."""
        ...


class PartitionSource:
    """Reads partitions from given offsets, without a group."""

    def __init__(
        self, client: KafkaClient, starts: Mapping[TopicPartition, int], settings: ConsumerSettings
    ) -> None:
        """Create a consumer of assigned partitions, without a group.

        `starts` has an offset for each, where a negative one is EARLIEST or LATEST.
        """
        self._client = client
        self._settings = settings
        known = {key: offset for key, offset in starts.items() if offset >= 0}
        #: Partitions whose start offset must still be requested.
        self._unresolved = {key: offset for key, offset in starts.items() if offset < 0}
        self._fetcher = Fetcher(client, known, settings.fetch)

    @property
    def is_placed(self) -> bool:
        """Return True if the start offset of each partition is known.

        Until then `poll` requests them, and may return no records.
        """
        return not self._unresolved

    def poll(self, timeout_ms: int) -> list[ConsumedRecords]:
        """Return the records that have arrived, waiting up to `timeout_ms`; see `Source.poll`.

        Partitions without a position get one first. Errors: those that are not retriable.
        """
        self._resolve_positions()
        if not self._fetcher.partitions:
            self._client.connections.pause(timeout_ms)
            return []
        consumed = self._fetcher.poll(timeout_ms)
        for records in consumed:
            if records.error is not None:
                self._recover(records.partition, records.next_offset, records.error)
        return consumed

    def set_processed(self, partition: TopicPartition, next_offset: int) -> None:
        """Do nothing: without a group no offset is committed."""

    def close(self) -> None:
        """Do nothing: there is no group to leave."""

    def _resolve_positions(self) -> None:
        """Request the offsets of partitions without a position, and seek to them.

        Raises an error that is not retriable.
        """
        if not self._unresolved:
            return
        found = list_offsets(
            self._client, self._unresolved, read_committed=self._settings.fetch.read_committed
        )
        for partition, result in found.items():
            if isinstance(result, EngineError):
                raise_if_lasting(result)
            else:
                del self._unresolved[partition]
                self._fetcher.seek(partition, result.offset)

    def _recover(self, partition: TopicPartition, position: int, error: EngineError) -> None:
        """Seek after an invalid position, or fetch again after a retriable error.

        `position` is the offset of the failed fetch. Errors: an error that is not retriable.
        """
        diverging = _diverging_offset(self._settings, error)
        if diverging is not None:
            self._fetcher.seek(partition, diverging)
        elif _needs_reset(error):
            self._unresolved[partition] = reset_out_of_range(self._settings, partition, position)
        else:
            raise_if_lasting(error)
            self._fetcher.try_again(partition, position)


def _is_topic_name(name: str) -> bool:
    """Return True if Kafka allows a topic of this name."""
    try:
        validate_topic(name)
    except InvalidTopicName:
        return False
    return True


class GroupSource:
    """Reads a topic, or all topics matching a pattern, as a group member."""

    def __init__(
        self,
        client: KafkaClient,
        settings: ConsumerSettings,
        *,
        topic: str | None,
        pattern: re.Pattern[str] | None = None,
    ) -> None:
        """Create a member that subscribes to `topic`, or to the topics matching `pattern`."""
        self._client = client
        self._settings = settings
        self._pattern = pattern
        #: Subscribed topics; with a pattern those that matched at the last refresh.
        self._topics = [topic] if topic is not None else self._request_matching_topics()
        #: Whether the topic's name is invalid; Java reports that at the first poll.
        self._has_invalid_name = pattern is None and not _is_topic_name(self._topics[0])
        #: Monotonic time of the next refresh of matching topics.
        self._next_refresh_ms = self._now_ms() + _METADATA_MAX_AGE_MS
        self.consumer = create_group_consumer(
            client,
            settings.member,
            self._topics,
            start_of=self._start_offsets,
            fetch=settings.fetch,
            auto_commit_interval_ms=settings.commit_interval_ms,
            commits=settings.commits,
        )

    def poll(self, timeout_ms: int) -> list[ConsumedRecords]:
        """Return arrived records; see `Source.poll`.

        With a pattern, new topics that match are subscribed to every _METADATA_MAX_AGE_MS. Also
        raises ToolFailure if the brokers refuse the topic's name as invalid.
        """
        if self._has_invalid_name:
            self._check_name(self._topics[0])
        if self._pattern is not None and self._now_ms() >= self._next_refresh_ms:
            self._next_refresh_ms = self._now_ms() + _METADATA_MAX_AGE_MS
            topics = self._request_matching_topics()
            if topics != self._topics:
                self._topics = topics
                self.consumer.session.subscribe(topics)
        consumed = self.consumer.poll(timeout_ms)
        for records in consumed:
            if records.error is not None:
                self._recover(records.partition, records.next_offset, records.error)
        return consumed

    def _check_name(self, topic: str) -> None:
        """Request the topic's metadata; raise ToolFailure if its name is refused as invalid."""
        failure = topic_failure(self._client.view([topic]), topic)
        if failure is not None and failure.code == INVALID_TOPIC_EXCEPTION:
            raise ToolFailure(java_class(failure), f"Invalid topics: [{topic}]")

    def set_processed(self, partition: TopicPartition, next_offset: int) -> None:
        """Limit what is committed: of the last poll only records below `next_offset` were used."""
        self.consumer.set_processed(partition, next_offset)

    def close(self) -> None:
        """Commit the offsets of used records, and leave the group."""
        self.consumer.close()

    def _now_ms(self) -> int:
        """Return the monotonic time in ms."""
        return self._client.clock.monotonic_ms()

    def _request_matching_topics(self) -> list[str]:
        """Return the cluster's topics that match the pattern, sorted, without internal ones."""
        assert self._pattern is not None
        return [
            name
            for name in sorted(self._client.view(None).topics)
            if name not in _INTERNAL_TOPICS and self._pattern.fullmatch(name)
        ]

    def _start_offsets(
        self, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, int | EngineError]:
        """Return the start offsets of partitions without a committed offset, or their errors."""
        return _request_offsets(
            self._client,
            self._settings,
            {key: _reset_without_commit(self._settings, key) for key in partitions},
        )

    def _recover(self, partition: TopicPartition, position: int, error: EngineError) -> None:
        """Seek after an invalid position, or fetch again after a retriable error.

        `position` is the offset of the failed fetch. Errors: an error that is not retriable.
        """
        diverging = _diverging_offset(self._settings, error)
        if diverging is not None:
            self.consumer.seek(partition, diverging)
        elif _needs_reset(error):
            reset = reset_out_of_range(self._settings, partition, position)
            start = _request_offsets(self._client, self._settings, {partition: reset})[partition]
            if isinstance(start, EngineError):
                # After a retriable error the partition is fetched again at the same offset.
                raise_if_lasting(start)
                self.consumer.fetcher.try_again(partition, position)
            else:
                self.consumer.seek(partition, start)
        else:
            raise_if_lasting(error)
            self.consumer.fetcher.try_again(partition, position)


def _request_offsets(
    client: KafkaClient, settings: ConsumerSettings, timestamps: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int | EngineError]:
    """Request the offset of each partition at a timestamp; return it or the error."""
    found = list_offsets(client, timestamps, read_committed=settings.fetch.read_committed)
    return {
        key: result if isinstance(result, EngineError) else result.offset
        for key, result in found.items()
    }


def _reset_without_commit(settings: ConsumerSettings, partition: TopicPartition) -> int:
    """Return EARLIEST or LATEST for a partition without a committed offset.

    Errors: ToolFailure with auto.offset.reset=none.
    """
    if settings.reset is None:
        raise ToolFailure(
            _NO_OFFSET, f"Undefined offset with no reset policy for partitions: [{partition}]"
        )
    return settings.reset


def reset_out_of_range(settings: ConsumerSettings, partition: TopicPartition, position: int) -> int:
    """Return EARLIEST or LATEST, by auto.offset.reset, after OFFSET_OUT_OF_RANGE at `position`.

    Errors: ToolFailure with auto.offset.reset=none.
    """
    if settings.reset is None:
        raise ToolFailure(
            _OUT_OF_RANGE,
            "Fetch position is out of range with no configured reset policy: "
            f"{{{partition}={position}}}",
        )
    return settings.reset


def _diverging_offset(settings: ConsumerSettings, error: EngineError) -> int | None:
    """Return the offset at which a truncated log diverges from what was consumed.

    None if the error is another one, or with auto.offset.reset=none. The consumer seeks there.
    """
    if isinstance(error, LogTruncated) and settings.reset is not None:
        return error.end_offset
    return None


def _needs_reset(error: EngineError) -> bool:
    """Return True if the position is out of range, or in a part that was truncated.

    Then auto.offset.reset decides where the consumer continues.
    """
    is_out_of_range = isinstance(error, ApiError) and error.code == OFFSET_OUT_OF_RANGE
    return is_out_of_range or isinstance(error, LogTruncated)


def raise_if_lasting(error: EngineError) -> None:
    """Raise the error if a retry cannot succeed: an ApiError that is not retriable."""
    if isinstance(error, ApiError) and not kafka_error(error.code).is_retriable:
        raise error
