"""Encode the Fetch requests of a follower's fetch session, and decode the responses.

A follower has one fetch session with each leader, for each of its fetchers (KIP-227):

| request | session id, epoch | partitions in it |
|---|---|---|
| the first, and after any failure | 0, 0 | all |
| the next ones | the leader's id, 1, 2, … | the changes, and the partitions to forget |

A leader without room for a session answers with id 0: each request is then a first one. Topics are
sent by id if all of them have one. The handler knows which partitions are in the leader's session,
but no positions: `FollowedPartitions` owns those, and returns which have changed.

Source: REPL-4, REPL-5, FET-1; Kafka's FetchSessionHandler.
Differs: a leader that does not support version 12 (older than Kafka 2.7) is not followed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Final

from engine.client.connection import Call, FastExchange
from engine.kafka_errors import NONE
from engine.model import TopicPartition, new_tuple
from engine.replication.follower_encoders import Give
from engine.replication.follower_session import LocalSession
from engine.replication.following.fetch_state import PartitionResponse
from engine.replication.following.followed_partitions import ReplicaFetcherConfig
from engine.replication.following.local_fetch import LocalFetch, LocalFetched
from engine.replication.partition_types import EpochEnd, FetchParams, FetchSpec
from engine.replication.watermark import Isolation
from engine.wire import messages
from engine.wire.fast_replica_bytes import (
    ReplicaFetch,
    ReplicaLimits,
    encode_replica_fetch_fast,
)
from engine.wire.fetch_bytes import (
    FIRST_WITH_REPLICA_STATE,
    FIRST_WITH_TOPIC_IDS,
)

#: The first version in which a leader returns the diverging epoch.
_LOWEST_FETCH: Final = 12
_NO_SESSION: Final = 0
_FIRST_EPOCH: Final = 0
_LAST_EPOCH: Final = 0x7FFFFFFF
_NO_EPOCH: Final = -1


class FetchSessionHandler:
    """The fetch session of one fetcher with its leader; one request at a time (REPL-5)."""

    def __init__(
        self, replica_id: int, replica_epoch: Callable[[], int], config: ReplicaFetcherConfig
    ) -> None:
        """Create without a session; `replica_epoch` returns the present broker epoch."""
        self._replica_id = replica_id
        self._replica_epoch = replica_epoch
        self._config = config
        #: Session id, and epoch of the next request; without a session that is a full request.
        self._session_id = _NO_SESSION
        self._epoch = _FIRST_EPOCH
        #: Partitions that the leader has in the session, each with its topic id (None: by name).
        self._held: dict[TopicPartition, bytes | None] = {}
        #: The same partitions by topic id and index. Built when a response of a remote leader needs
        #: it.
        self._by_id: dict[tuple[bytes | None, int], TopicPartition] | None = None
        #: Whether the session has topic ids: it ends when a partition has none.
        self._uses_ids = False
        #: The session at a leader in the same process, which replaces the fields above. None with a
        #: remote leader.
        self._local: LocalSession | None = None
        self._local_params = FetchParams(
            replica_id, config.max_wait_ms, config.min_bytes, config.max_bytes, Isolation.LOG_END
        )

    @property
    def is_first(self) -> bool:
        """True if the next request, or the one in flight, is a full one with all partitions."""
        return self._epoch == _FIRST_EPOCH

    @property
    def place(self) -> tuple[int, int]:
        """Return the session id and the epoch of the next request, or of the one in flight."""
        return self._session_id, self._epoch

    @property
    def holds_partitions(self) -> bool:
        """True if the leader's session has any partition."""
        return bool(self._held)

    def holds(self, topic_partition: TopicPartition) -> bool:
        """True if the leader's session has the partition."""
        return topic_partition in self._held

    def build_call(
        self,
        specs: Mapping[TopicPartition, FetchSpec],
        moved: Set[TopicPartition],
        topic_ids: Mapping[TopicPartition, bytes],
        give: Give | None = None,
        fast: FastExchange | None = None,
    ) -> Call:
        """Return the Fetch request of one cycle, with the changes to the session.

        `moved` has the partitions whose position changed since the last request. `give` receives a
        local leader's response for one partition while the fetch is parked. `fast` receives the
        responses of a remote leader that continue the session on the fast path. A local leader gets
        the partitions as values, without the session.
        """
        # Partitions to forget are sent in the form in which they were requested.
        uses_ids = all(key in topic_ids for key in specs) if specs else self._uses_ids

        def message(version: int) -> messages.FetchRequest:
            """Build the request for the version that both sides know."""
            return self._build_message(version, specs, moved, topic_ids if uses_ids else None)

        return Call(
            "Fetch",
            message,
            _LOWEST_FETCH,
            None if uses_ids else FIRST_WITH_TOPIC_IDS - 1,
            local=LocalFetch(self._local_params, specs, topic_ids, self._local, give),
            fast=fast,
        )

    def _build_message(
        self,
        version: int,
        specs: Mapping[TopicPartition, FetchSpec],
        moved: Set[TopicPartition],
        topic_ids: Mapping[TopicPartition, bytes] | None,
    ) -> messages.FetchRequest:
        """Return the next Fetch of the session: changed partitions, and partitions to forget."""
        uses_ids = topic_ids is not None
        if uses_ids != self._uses_ids:
            self.reset()
            self._uses_ids = uses_ids
        requested = {key: None if topic_ids is None else topic_ids[key] for key in specs}
        sent, forgotten = specs, dict[TopicPartition, bytes | None]()
        if not self.is_first:
            held = self._held
            sent = {
                key: spec
                for key, spec in specs.items()
                if key in moved or key not in held or held[key] != requested[key]
            }
            forgotten = {
                key: topic_id
                for key, topic_id in held.items()
                if key not in requested or requested[key] != topic_id
            }
        self._held, self._by_id = requested, None
        request = self._build_request(version)
        request.session_id, request.session_epoch = self._session_id, self._epoch
        request.topics = _build_topics(sent, requested, version)
        request.forgotten_topics_data = _build_forgotten(forgotten, version)
        return request

    def _build_request(self, version: int) -> messages.FetchRequest:
        """Return a Fetch request with limits and replica id, without partitions."""
        config = self._config
        request = messages.FetchRequest(
            max_wait_ms=config.max_wait_ms,
            min_bytes=config.min_bytes,
            max_bytes=config.max_bytes,
        )
        if version >= FIRST_WITH_REPLICA_STATE:
            request.replica_state = messages.FetchRequest.ReplicaState(
                replica_id=self._replica_id, replica_epoch=self._replica_epoch()
            )
        else:
            request.replica_id = self._replica_id
        return request

    def process_response(
        self, response: messages.FetchResponse
    ) -> list[tuple[TopicPartition, PartitionResponse]]:
        """Return the partitions of a Fetch response, with their values; advance the session.

        An error of the complete response resets the session and returns an empty list.
        """
        if response.error_code != NONE:
            self.reset()
            return []
        names = {
            topic_id: key.topic for key, topic_id in self._held.items() if topic_id is not None
        }
        answers = [
            (
                TopicPartition(topic.topic or names.get(topic.topic_id, ""), row.partition_index),
                _parse_partition(row),
            )
            for topic in response.responses
            for row in topic.partitions
        ]
        self._session_id = response.session_id
        if self._session_id == _NO_SESSION:
            self.reset()
        else:
            self._advance_epoch()
        return answers

    def process_local_response(
        self, fetched: LocalFetched
    ) -> list[tuple[TopicPartition, PartitionResponse]]:
        """Return the partitions of a local leader's response, and store its session."""
        self._local = fetched.session
        return fetched.answers

    def _advance_epoch(self) -> None:
        """Increment the session epoch; after the highest one it wraps to 1."""
        self._epoch = 1 if self._epoch == _LAST_EPOCH else self._epoch + 1

    def reset(self) -> None:
        """Forget the session: the next request starts a new one with all partitions."""
        self._session_id, self._epoch, self._held = _NO_SESSION, _FIRST_EPOCH, {}
        self._by_id = self._local = None

    # The fast path of a fetch cycle

    def find_partition(self, session_id: int, topic_id: bytes, index: int) -> TopicPartition | None:
        """Return the partition of the session with a topic id and index.

        None if the session has no such partition, or if `session_id` is not that of the current
        session.
        """
        if session_id != self._session_id or session_id == _NO_SESSION:
            return None
        by_id = self._by_id
        if by_id is None:
            by_id = self._by_id = {
                (held_id, key.partition): key for key, held_id in self._held.items()
            }
        return by_id.get((topic_id, index))

    def took_fast(self) -> None:
        """Advance the session epoch after a response on the fast path."""
        self._advance_epoch()

    def encode_fast(
        self,
        client_id: bytes,
        correlation_id: int,
        version: int,
        topic_partition: TopicPartition,
        spec: FetchSpec,
    ) -> bytes:
        """Return the frame of the next request, with one partition at the position `spec`."""
        topic_id = self._held[topic_partition]
        assert topic_id is not None
        config = self._config
        limits = (
            version, config.max_wait_ms, config.min_bytes, config.max_bytes, self._session_id,
            self._replica_id, self._replica_epoch(),
        )  # fmt: skip
        fetch_offset, max_bytes, leader_epoch, fetched_epoch, start = spec
        _, index = topic_partition
        request = (
            correlation_id, new_tuple(ReplicaLimits, limits), self._epoch, topic_id, index,
            _or_no_epoch(leader_epoch), fetch_offset, _or_no_epoch(fetched_epoch), start, max_bytes,
        )  # fmt: skip
        return encode_replica_fetch_fast(client_id, new_tuple(ReplicaFetch, request))


def _parse_partition(row: messages.FetchResponse.PartitionData) -> PartitionResponse:
    """Return the values of a partition in a Fetch response.

    There is no diverging epoch if the logs agree.
    """
    diverging = row.diverging_epoch
    parted = None
    if diverging.epoch != _NO_EPOCH:
        parted = EpochEnd(diverging.epoch, diverging.end_offset)
    return PartitionResponse(
        row.error_code, row.high_watermark, row.log_start_offset, row.records or b"", parted
    )


def _build_topics(
    specs: Mapping[TopicPartition, FetchSpec],
    topic_ids: Mapping[TopicPartition, bytes | None],
    version: int,
) -> list[messages.FetchRequest.FetchTopic]:
    """Return the partitions to fetch as rows by topic; by topic id in versions that have ids."""
    topics: dict[tuple[str, bytes | None], messages.FetchRequest.FetchTopic] = {}
    for key, spec in specs.items():
        (name, index), topic_id = key, topic_ids[key]
        topic = topics.get((name, topic_id))
        if topic is None:
            topic = topics[name, topic_id] = messages.FetchRequest.FetchTopic()
            if version >= FIRST_WITH_TOPIC_IDS and topic_id is not None:
                topic.topic_id = topic_id
            else:
                topic.topic = name
        topic.partitions.append(
            messages.FetchRequest.FetchPartition(
                partition=index,
                fetch_offset=spec.fetch_offset,
                partition_max_bytes=spec.max_bytes,
                current_leader_epoch=_or_no_epoch(spec.current_leader_epoch),
                last_fetched_epoch=_or_no_epoch(spec.last_fetched_epoch),
                log_start_offset=spec.log_start_offset,
            )
        )
    return list(topics.values())


def _build_forgotten(
    forgotten: Mapping[TopicPartition, bytes | None], version: int
) -> list[messages.FetchRequest.ForgottenTopic]:
    """Return the partitions to remove from the session as rows by topic, by id in new versions."""
    topics: dict[tuple[str, bytes | None], messages.FetchRequest.ForgottenTopic] = {}
    for (name, index), topic_id in forgotten.items():
        topic = topics.get((name, topic_id))
        if topic is None:
            topic = topics[name, topic_id] = messages.FetchRequest.ForgottenTopic()
            if version >= FIRST_WITH_TOPIC_IDS and topic_id is not None:
                topic.topic_id = topic_id
            else:
                topic.topic = name
        topic.partitions.append(index)
    return list(topics.values())


def _or_no_epoch(epoch: int | None) -> int:
    """Return a leader epoch as a request has it: −1 for None."""
    return _NO_EPOCH if epoch is None else epoch
