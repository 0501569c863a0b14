"""Fetch of a follower in the same process: read like any follower's, answered in values.

Source: KafkaApis.handleFetchRequest; D12.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.api.exchange import Exchange
from engine.api.fetch import FetchDeps
from engine.api.fetch_refusal import fetch_refusal
from engine.errors import StorageError
from engine.host.promise import Promise
from engine.ids import uuid_text
from engine.kafka_errors import KAFKA_STORAGE_ERROR
from engine.model import TopicPartition
from engine.replication.delayed_fetch import FetchResult, FetchResults
from engine.replication.follower_encoders import create_local_park
from engine.replication.follower_session import LocalSession
from engine.replication.following.fetch_state import PartitionResponse
from engine.replication.following.local_fetch import LocalFetch, LocalFetched


class AnswerLocalFetch:
    """The leader's side of a `LocalFetch`."""

    def __init__(self, deps: FetchDeps) -> None:
        self._deps = deps

    def handle(self, request: LocalFetch, _exchange: Exchange) -> Promise[LocalFetched]:
        """Read partitions for a follower in the same process.

        Promises those that have changed since the session's last response, at once or when there
        are records.
        """
        session = request.session
        if session is None or session.owner is not self:
            # No session, or one from before this broker's restart.
            session = LocalSession(self)
        session.update_positions(request.specs.items())
        refused = self._refused_partitions(request)
        specs = [each for each in request.specs.items() if each[0] not in refused]
        if not specs:
            return Promise.of(_respond(session, refused, []))
        params = request.params
        bound = min(params.max_bytes, self._deps.max_bytes)
        if bound < params.max_bytes:
            params = params._replace(max_bytes=bound, min_bytes=min(params.min_bytes, bound))
        # With a refused partition the fetch does not park, so that the refusal is reported at once.
        give = None if refused or params.min_bytes > 1 else request.give
        fetch = self._deps.replica_manager.fetch
        if give is None:
            read = fetch(params, specs)
        else:
            read = fetch(
                params, specs, create_local_park(session.positions, give), session.positions
            )

        def answer(results: FetchResults) -> LocalFetched:
            """Return the response with the results of the fetch."""
            self._count_sent(results, params.replica_id)
            return _respond(session, refused, results)

        return read.then(answer) if isinstance(read, Promise) else Promise.of(answer(read))

    def _count_sent(self, results: FetchResults, replica_id: int) -> None:
        """Count the bytes that are sent to a follower, in the metrics of each partition."""
        partitions = self._deps.replica_manager.partitions
        for key, result in results:
            here = partitions.get(key) if result.size_bytes else None
            if here is not None:
                here.note_sent_to_follower(replica_id, result.size_bytes)

    def _refused_partitions(self, request: LocalFetch) -> dict[TopicPartition, PartitionResponse]:
        """Return the partitions that cannot be read, with their error codes."""
        partitions, metadata_cache = (
            self._deps.replica_manager.partitions,
            self._deps.metadata_cache,
        )
        topic_ids = request.topic_ids
        texts = {topic_id: uuid_text(topic_id) for topic_id in frozenset(topic_ids.values())}
        refused = {}
        for topic_partition in request.specs:
            topic_id = topic_ids.get(topic_partition)
            text = None if topic_id is None else texts[topic_id]
            here = partitions.get(topic_partition)
            code = fetch_refusal(topic_partition, text, metadata_cache, here)
            if code:
                refused[topic_partition] = PartitionResponse(code)
        return refused


def _respond(
    session: LocalSession,
    refused: Mapping[TopicPartition, PartitionResponse],
    results: FetchResults,
) -> LocalFetched:
    """Return the response with all results.

    Its offsets are stored in the session as the last ones sent.
    """
    answers = [(key, _read_result(result)) for key, result in results]
    answers += refused.items()
    positions = session.positions
    for key, answer in answers:
        # An error has no offsets, so that the next response without an error counts as changed.
        positions[key].note_offsets(answer.high_watermark, answer.log_start_offset)
    return LocalFetched(answers, session)


def _read_result(result: FetchResult) -> PartitionResponse:
    """Convert a partition's result to plain values; read its records and release their files."""
    error, records, watermark, _, log_start_offset, diverging, _ = result
    if error is not None:
        return PartitionResponse(error.code)
    content = b""
    if records is not None:
        try:
            content = records.read()
        except StorageError:
            return PartitionResponse(KAFKA_STORAGE_ERROR)
        finally:
            records.release()
    return PartitionResponse(0, watermark, log_start_offset, content, diverging)
