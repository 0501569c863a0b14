"""Fetch of a follower in the same process: read as any follower's, answered in values.

Source: KafkaApis.handleFetchRequest; D12.
"""

from __future__ import annotations

from engine.api.exchange import Exchange
from engine.api.fetch import FetchDeps
from engine.api.fetch_refusal import fetch_refusal
from engine.errors import StorageError
from engine.host.promise import Promise
from engine.kafka_errors import KAFKA_STORAGE_ERROR
from engine.model import TopicPartition
from engine.naming import uuid_text
from engine.replication.delayed_fetch import FetchResult, FetchResults
from engine.replication.following.fetch_state import LeaderAnswer
from engine.replication.following.local_fetch import LocalFetch, LocalFetched
from engine.replication.parked_fetch import local_park
from engine.replication.partition_types import FetchSpec


class AnswerLocalFetch:
    """The leader's side of a `LocalFetch`."""

    def __init__(self, deps: FetchDeps) -> None:
        self._deps = deps

    def handle(self, request: LocalFetch, _exchange: Exchange) -> Promise[LocalFetched]:
        """Read and answer, now or when there is enough."""
        refused: list[tuple[TopicPartition, LeaderAnswer]] = []
        specs: list[tuple[TopicPartition, FetchSpec]] = []
        replica_manager, metadata_cache = self._deps.replica_manager, self._deps.metadata_cache
        for topic_partition, spec in request.specs.items():
            topic_id = request.topic_ids.get(topic_partition.topic)
            text = None if topic_id is None else uuid_text(topic_id)
            here = replica_manager.partitions.get(topic_partition)
            code = fetch_refusal(topic_partition, text, metadata_cache, here)
            if code:
                refused.append((topic_partition, LeaderAnswer(code)))
            else:
                specs.append((topic_partition, spec))
        if not specs:
            return Promise.of(LocalFetched(refused))
        params = request.params
        bound = min(params.max_bytes, self._deps.max_bytes)
        if bound < params.max_bytes:
            params = params._replace(max_bytes=bound, min_bytes=min(params.min_bytes, bound))
        # A refusal is told soon, by a fetch that ends with what there is.
        give = None if refused or params.min_bytes > 1 else request.give
        park = None if give is None else local_park(give)
        read = replica_manager.fetch(params, specs, park)

        def answer(results: FetchResults) -> LocalFetched:
            return LocalFetched([(key, _answer_of(row)) for key, row in results] + refused)

        return read.then(answer) if isinstance(read, Promise) else Promise.of(answer(read))


def _answer_of(result: FetchResult) -> LeaderAnswer:
    error, records, watermark, _, log_start_offset, diverging, _ = result
    if error is not None:
        return LeaderAnswer(error.code)
    content = b""
    if records is not None:
        try:
            content = records.read()
        except StorageError:
            return LeaderAnswer(KAFKA_STORAGE_ERROR)
        finally:
            records.release()
    return LeaderAnswer(0, watermark, log_start_offset, content, diverging)
