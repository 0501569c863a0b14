"""`kafka-replica-verification`: fetches all replicas of partitions, and compares them.

```
offset 7 ─┬─ replica 1: batch 7..9, checksum a ─┐ alike, and below both high watermarks: go on at 10
          └─ replica 2: batch 7..9, checksum a ─┘
```

Replicas are fetched like by a consumer in their rack, which followers serve up to the high
watermark.

Source: ReplicaVerificationTool of 3.9.1 and 4.3.0.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.connection import Call
from engine.client.metadata import ClusterView
from engine.client.offsets import list_offsets
from engine.errors import EngineError
from engine.kafka_errors import NONE
from engine.model import TopicPartition, by_topic
from engine.records.batch import BatchView
from engine.records.crc import crc32c
from engine.records.view import RecordBatch, batches_in
from engine.wire import messages
from kctl import exits
from kctl.compat.java_failures import ToolFailure
from kctl.compat.java_log import log_line
from kctl.compat.java_options import (
    HELP,
    VERSION,
    GivenOptions,
    OptionsRefused,
    ToolOption,
    parse_options,
    refused,
    require,
    usage_text,
)
from kctl.compat.java_order import in_java_order
from kctl.compat.releases import Release
from kctl.compat.tool_call import ToolCall
from kctl.exits import Terminated

SUMMARY = "Compares the records of all replicas of partitions."
_BOTH: Final = (
    ToolOption("broker-list", "Brokers to ask first. Required.", "HOST:PORT,..."),
    ToolOption("fetch-size", "Bytes of a partition in a response; 1048576.", "BYTES"),
    ToolOption("max-wait-ms", "How long a broker waits for records; 1000.", "MS"),
    ToolOption("topics-include", "Topics whose whole names fit; all.", "REGEX"),
    ToolOption("time", "Where to begin: -1 (end, default), -2 (start), or a time.", "MS"),
    ToolOption("report-interval-ms", "Milliseconds between lines; 30000.", "MS"),
    HELP,
    VERSION,
)
_THREE: Final = (ToolOption("topic-white-list", "As --topics-include.", "REGEX"),)
_LOGGER: Final = "org.apache.kafka.tools.ReplicaVerificationTool"
#: Versions of Fetch: followers serve consumers from 11 on; 13 replaces topic names by ids.
_VERSIONS: Final = (11, 12)
_FETCH_BYTES: Final = 1 << 20


def _options(release: Release) -> tuple[ToolOption, ...]:
    """Return the options that kafka-replica-verification has in a release."""
    return _BOTH if release.is_four else _BOTH + _THREE


def run_unparsed(call: ToolCall) -> int:
    """Run kafka-replica-verification: compare replicas until a signal, or until they differ.

    Returns the exit code.
    """
    log_line(
        call.err,
        "WARN",
        "This tool is deprecated and may be removed in a future major release.",
        _LOGGER,
    )
    known = _options(call.release)
    usage = usage_text(call.tool, SUMMARY, known)
    try:
        given = parse_options(known, call.arguments)
        if not call.arguments or given.has("help"):
            call.err.write(usage)
            return exits.FAILED
        if given.has("version"):
            call.out.write(f"{call.release.value}\n")
            return exits.OK
        require(given, "broker-list")
        pattern = _compile_pattern(given)
    except OptionsRefused as error:
        call.err.write(f"{error}\n{usage}")
        return exits.FAILED
    servers = given.needed("broker-list")
    call.admit(given.names(), servers)
    with call.client(servers, {}) as client:
        try:
            return _Verification(call, client, given).run(pattern)
        except KeyboardInterrupt as interrupt:
            return exits.TERMINATED if isinstance(interrupt, Terminated) else exits.INTERRUPTED


def _compile_pattern(given: GivenOptions) -> re.Pattern[str]:
    """Compile the pattern of topics; commas separate alternatives. Raises OptionsRefused."""
    text = given.text("topics-include") or given.text("topic-white-list") or ".*"
    bare = text.strip().replace(",", "|").replace(" ", "").strip("\"'")
    try:
        return re.compile(bare)
    except re.error:
        raise refused(f"{bare} is an invalid regex.") from None


class _ReplicaBatches(NamedTuple):
    """The batches that one replica returned for a partition, and its high watermark."""

    high_watermark: int
    batches: list[RecordBatch]


class _Verification:
    """Fetches replicas repeatedly, compares them, and prints differences."""

    def __init__(self, call: ToolCall, client: KafkaClient, given: GivenOptions) -> None:
        """Create a verification of replicas with the options of the call."""
        self._call = call
        self._client = client
        self._wait_ms = given.number("max-wait-ms", 1000, 32)
        self._fetch_bytes = given.number("fetch-size", _FETCH_BYTES, 32)
        self._interval_ms = given.number("report-interval-ms", 30_000)
        self._time = given.number("time", -1)
        #: Offset of the next fetch from all replicas, by partition.
        self._offsets: dict[TopicPartition, int] = {}

    def run(self, pattern: re.Pattern[str]) -> int:
        """Compare the replicas of matching topics until their offsets differ.

        Returns FAILED then. Does not end otherwise, except by a signal.
        """
        view = self._client.view(None)
        replicas = {
            TopicPartition(name, row.partition): row.replicas
            for name, topic in view.topics.items()
            if pattern.fullmatch(name)
            for row in topic.partitions
        }
        if not replicas:
            self._call.err.write(
                f"No topics found. {pattern.pattern} if specified, is either filtering out all "
                "topics or there is no topic.\n"
            )
            return exits.FAILED
        self._offsets = self._request_starts(replicas)
        self._print("verification process is started")
        reported_ms = self._now_ms()
        while True:
            fetched = self._fetch(view, replicas)
            lags = {}
            for partition, broker_ids in replicas.items():
                lag = self._compare(partition, fetched.get(partition, {}), broker_ids)
                if lag is None:
                    return exits.FAILED
                lags[partition] = lag
            if self._now_ms() >= reported_ms + self._interval_ms:
                self._report(lags)
                reported_ms = self._now_ms()

    def _request_starts(
        self, partitions: Mapping[TopicPartition, object]
    ) -> dict[TopicPartition, int]:
        """Request the start offset of each partition; raises ToolFailure for the first error."""
        found = list_offsets(self._client, dict.fromkeys(partitions, self._time))
        starts = {}
        for partition, result in found.items():
            if isinstance(result, EngineError):
                raise ToolFailure("java.lang.RuntimeException", f"{partition}: {result}")
            starts[partition] = result.offset
        return starts

    def _now_ms(self) -> int:
        """Return the time in ms since 1970."""
        return self._client.clock.wall_ms()

    def _print(self, text: str) -> None:
        """Print a line with the local time."""
        now_ms = self._now_ms()
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now_ms / 1000))
        self._call.out.write(f"{at},{now_ms % 1000:03d}: {text}\n")
        self._call.flush()

    # -- fetch

    def _fetch(
        self, view: ClusterView, replicas: Mapping[TopicPartition, tuple[int, ...]]
    ) -> dict[TopicPartition, dict[int, _ReplicaBatches]]:
        """Fetch each partition from all its replicas at the same offset.

        Returns batches by partition and broker id; unreachable brokers are missing.
        """
        by_broker: dict[int, list[TopicPartition]] = {}
        for partition, ids in replicas.items():
            for broker_id in ids:
                if broker_id in view.brokers:
                    by_broker.setdefault(broker_id, []).append(partition)
        calls = {
            broker_id: (
                view.brokers[broker_id].address,
                Call("Fetch", self._fetch_request(view, broker_id, partitions), *_VERSIONS),
            )
            for broker_id, partitions in by_broker.items()
        }
        deadline_ms = self._client.clock.monotonic_ms() + self._client.timeout_ms
        found: dict[TopicPartition, dict[int, _ReplicaBatches]] = {}
        for broker_id, result in self._client.exchange(calls, deadline_ms).items():
            if isinstance(result, EngineError):
                continue
            for topic in result.message.responses:
                for row in topic.partitions:
                    key = TopicPartition(topic.topic, row.partition_index)
                    found.setdefault(key, {})[broker_id] = _batches_from(row, self._offsets[key])
        return found

    def _fetch_request(
        self, view: ClusterView, broker_id: int, partitions: list[TopicPartition]
    ) -> messages.FetchRequest:
        """Return the Fetch request for a broker's partitions at their next offsets."""
        request = messages.FetchRequest
        topics = [
            request.FetchTopic(
                topic=name,
                partitions=[
                    request.FetchPartition(
                        partition=key.partition,
                        fetch_offset=self._offsets[key],
                        partition_max_bytes=self._fetch_bytes,
                    )
                    for key in keys
                ],
            )
            for name, keys in by_topic(partitions).items()
        ]
        return request(
            max_wait_ms=self._wait_ms,
            min_bytes=1,
            max_bytes=self._fetch_bytes * max(len(partitions), 1),
            isolation_level=0,
            session_id=0,
            session_epoch=-1,
            topics=topics,
            rack_id=view.brokers[broker_id].rack or "",
        )

    # -- comparison

    def _compare(
        self,
        partition: TopicPartition,
        fetched: Mapping[int, _ReplicaBatches],
        replicas: tuple[int, ...],
    ) -> int | None:
        """Compare a partition's batches, up to the lowest offset that all replicas returned.

        Returns how many offsets are left to the high watermark, None if offsets differ. Only
        batches below each replica's high watermark are compared.
        """
        columns = [fetched[broker_id].batches for broker_id in replicas if broker_id in fetched]
        ids = [broker_id for broker_id in replicas if broker_id in fetched]
        if len(ids) == len(replicas):
            for batches in zip(*columns, strict=False):
                if any(
                    batch.last_offset >= fetched[broker_id].high_watermark
                    for broker_id, batch in zip(ids, batches, strict=True)
                ):
                    break
                if not self._are_alike(partition, ids, batches):
                    return None
                self._offsets[partition] = batches[0].next_offset
        highest = max((found.high_watermark for found in fetched.values()), default=-1)
        return highest - self._offsets[partition]

    def _are_alike(
        self, partition: TopicPartition, ids: list[int], batches: tuple[RecordBatch, ...]
    ) -> bool:
        """Print how the replicas' batches differ; return True if their offsets are equal.

        A different checksum is printed, and does not end the verification.
        """
        first = batches[0]
        for broker_id, batch in zip(ids[1:], batches[1:], strict=True):
            if batch.last_offset != first.last_offset:
                self._print(
                    f"partition {partition}: replica {ids[0]}'s offset {first.last_offset} doesn't "
                    f"match replica {broker_id}'s offset {batch.last_offset}"
                )
                return False
            if _checksum(batch) != _checksum(first):
                self._print(
                    f"partition {partition} has unmatched checksum at offset {batch.last_offset}; "
                    f"replica {ids[0]}'s checksum {_checksum(first)}; replica {broker_id}'s "
                    f"checksum {_checksum(batch)}"
                )
        return True

    def _report(self, lags: Mapping[TopicPartition, int]) -> None:
        """Print the partition whose comparison lags most behind the high watermark."""
        # Of equal lags print the first in the order of Java's HashMap.
        worst = max(in_java_order(lags), key=lambda partition: lags[partition])
        self._print(
            f"max lag is {lags[worst]} for partition {worst} at offset "
            f"{self._offsets[worst]} among {len(lags)} partitions"
        )


def _checksum(batch: RecordBatch) -> int:
    """Return a batch's CRC; of a legacy message the checksum of all its bytes."""
    return batch.crc if isinstance(batch, BatchView) else crc32c(batch.raw)


def _batches_from(row: messages.FetchResponse.PartitionData, position: int) -> _ReplicaBatches:
    """Return a replica's high watermark, and its batches from offset `position` on.

    After an error -1 and none.
    """
    if row.error_code != NONE:
        return _ReplicaBatches(-1, [])
    found = [
        batch
        for batch in batches_in(memoryview(row.records or b""), allow_partial_tail=True)
        if batch.last_offset >= position
    ]
    return _ReplicaBatches(row.high_watermark, found)
