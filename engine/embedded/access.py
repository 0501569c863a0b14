"""The requests of a test to a cluster: topics, records, lag, in-sync replicas.

Each call uses a new client, so brokers may be killed and started between calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from engine.client.blocking import METADATA_LOWEST, KafkaClient
from engine.client.connection import Call
from engine.client.fetching import Fetcher, FetchOptions
from engine.client.groups import committed_offsets
from engine.client.metadata import ClusterView, cluster_view, metadata_request
from engine.client.offsets import EARLIEST, LATEST, list_offsets
from engine.client.producing import OutgoingRecord, Producer
from engine.client.settings import Address, ClientSettings, parse_addresses
from engine.client.topic_admin import BROKER_DEFAULT, NewTopic, create_topics, delete_topics
from engine.embedded.login import (
    Login,
    java_properties,
    librdkafka_settings,
    python_settings,
)
from engine.errors import ApiError, EngineError
from engine.host.real import RealClock, RealEntropy
from engine.host.real_streams import RealStreams
from engine.model import TopicPartition
from engine.records.record import Header

_FETCH_WAIT_MS: Final = 50
_MS: Final = 1000


class ReceivedRecord(NamedTuple):
    """A consumed record; `key` and `value` are None for null."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


class NotEnoughRecords(EngineError):
    """Fewer records than expected arrived in time; `records` are those that arrived."""

    def __init__(
        self, topic: str, count: int, records: list[ReceivedRecord], wait_s: float
    ) -> None:
        super().__init__(f"{topic}: {len(records)} of {count} records after {wait_s:g} s")
        self.topic = topic
        self.count = count
        self.records = records


class NotInSync(EngineError):
    """Brokers are missing or replicas are not in sync after the timeout."""

    def __init__(self, missing: list[str], wait_s: float) -> None:
        super().__init__(f"not in sync after {wait_s:g} s: {', '.join(missing)}")
        self.missing = missing


class KafkaAccess:
    """Access to a cluster, by its addresses and a user if it requires one."""

    def __init__(self, bootstrap: str, login: Login | None = None, timeout_s: float = 30.0) -> None:
        """Create the access to a cluster at `bootstrap`; nothing connects before a call.

        `timeout_s` is the timeout of each call without one of its own.
        """
        self._bootstrap = bootstrap
        self.login = login
        self.timeout_s = timeout_s

    @property
    def bootstrap(self) -> str:
        """The brokers' addresses, separated by commas: `bootstrap.servers`."""
        return self._bootstrap

    # -- settings of other clients

    @property
    def java_properties(self) -> Mapping[str, str]:
        """The properties of a Java client: addresses, and the login if there is one."""
        return java_properties(self.bootstrap, self.login)

    @property
    def librdkafka_settings(self) -> dict[str, str]:
        """The settings of a client of librdkafka, such as confluent-kafka."""
        return librdkafka_settings(self.bootstrap, self.login)

    @property
    def python_settings(self) -> dict[str, str]:
        """The keyword arguments for clients of kafka-python and aiokafka."""
        return python_settings(self.bootstrap, self.login)

    # -- topics

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        replication_factor: int | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> str:
        """Create a topic, wait until every broker knows it, and return its name; raises ApiError.

        `replication_factor` None means the brokers' default.
        """
        replicas = BROKER_DEFAULT if replication_factor is None else replication_factor
        topic = NewTopic(name, partitions, replicas, configs=settings or {})
        with self._client() as client:
            result = create_topics(client, [topic])[name]
            if isinstance(result, ApiError):
                raise result
            for address in self._addresses(client):
                with self._client([address]) as each:
                    each.await_view([name], lambda view: _has_leaders(view, name), each.timeout_ms)
        return name

    def delete_topic(self, name: str) -> None:
        """Request the deletion of a topic, and return when it is deleted; raises ApiError."""
        with self._client() as client:
            error = delete_topics(client, [name])[name]
        if error is not None:
            raise error

    # -- records

    def produce(
        self,
        topic: str,
        *values: bytes | str | None,
        key: bytes | str | None = None,
        partition: int | None = None,
        headers: tuple[Header, ...] = (),
    ) -> list[int]:
        """Produce records with acks=all and return their offsets, in the order of `values`.

        Texts are written as UTF-8, None as null (a tombstone). Raises the errors of the requests.
        """
        offsets: dict[int, int] = {}
        with self._client() as client:
            producer = Producer(client)
            for place, value in enumerate(values):
                record = OutgoingRecord(
                    topic, _to_bytes(key), _to_bytes(value), headers, partition=partition
                )
                producer.add(record, place)
            for result in producer.flush():
                if result.error is not None:
                    raise result.error
                for delta, place in enumerate(result.batch.places):
                    offsets[place] = result.base_offset + delta
        return [offsets[place] for place in range(len(values))]

    def consume(
        self,
        topic: str,
        count: int | None = None,
        *,
        timeout_s: float | None = None,
        read_committed: bool = False,
    ) -> list[ReceivedRecord]:
        """Return the records of a topic from its start, without a group.

        Those of one partition are in order. Without `count` it returns the records that exist now;
        with a count it waits for that many. Raises NotEnoughRecords, and the errors of the
        requests.
        """
        wait_s = self.timeout_s if timeout_s is None else timeout_s
        with self._client() as client:
            partitions = self._partitions(client, topic)
            starts = _request_offsets(client, partitions, EARLIEST)
            ends = _request_offsets(client, partitions, LATEST, read_committed=read_committed)
            options = FetchOptions(read_committed, max_wait_ms=_FETCH_WAIT_MS)
            fetcher = Fetcher(client, starts, options)
            deadline_ms = client.clock.monotonic_ms() + round(wait_s * _MS)
            received: list[ReceivedRecord] = []
            while _wants_more(fetcher, ends, received, count):
                if client.clock.monotonic_ms() > deadline_ms:
                    expected = sum(ends.values()) if count is None else count
                    raise NotEnoughRecords(topic, expected, received, wait_s)
                for consumed in fetcher.poll(_FETCH_WAIT_MS):
                    if consumed.error is not None:
                        raise consumed.error
                    received += [
                        _to_received(consumed.partition, *row)
                        for run in consumed.runs
                        for row in zip(
                            run.offsets,
                            run.timestamps_ms,
                            run.keys,
                            run.values,
                            run.headers,
                            strict=True,
                        )
                    ]
        return received if count is None else received[:count]

    def lag(self, group: str, topic: str) -> dict[int, int]:
        """Return a group's lag in each partition: the number of offsets after its commit.

        Without a commit it counts from the log start. Raises the errors of the requests.
        """
        with self._client() as client:
            partitions = self._partitions(client, topic)
            starts = _request_offsets(client, partitions, EARLIEST)
            ends = _request_offsets(client, partitions, LATEST)
            committed = committed_offsets(client, group, partitions)
        return {
            key.partition: max(ends[key] - max(committed.get(key, -1), starts[key]), 0)
            for key in partitions
        }

    # -- replicas

    def leader(self, topic: str, partition: int = 0) -> int | None:
        """Return the broker id of a partition's leader, None while there is none.

        Raises ApiError.
        """
        with self._client() as client:
            view = client.view_of_existing([topic])
        found = view.partition(TopicPartition(topic, partition))
        return found.leader if found is not None and found.has_leader else None

    def wait_in_sync(self, *, brokers: int = 1, timeout_s: float | None = None) -> None:
        """Wait until all brokers are up, and each partition has a leader and a complete ISR.

        Every broker that responds must confirm it, since an isolated broker has outdated metadata.
        Raises NotInSync.
        """
        wait_s = self.timeout_s if timeout_s is None else timeout_s
        with self._client() as client:
            deadline_ms = client.clock.monotonic_ms() + round(wait_s * _MS)
            attempt = 0
            while True:
                missing = _missing_parts(client.view(None), brokers) or _missing_at_any(
                    client, brokers
                )
                if not missing:
                    return
                if client.clock.monotonic_ms() > deadline_ms:
                    raise NotInSync(missing, wait_s)
                client.back_off(min(attempt, 1))
                attempt += 1

    # -- clients

    def _client(
        self, addresses: Iterable[Address] | None = None, settings: ClientSettings | None = None
    ) -> KafkaClient:
        """Return a new client, by default for all brokers and with this login."""
        if settings is None and self.login is not None:
            settings = self.login.client_settings
        return KafkaClient(
            list(addresses or parse_addresses(self.bootstrap)),
            streams=RealStreams(),
            clock=RealClock(),
            entropy=RealEntropy(),
            settings=settings,
            timeout_ms=max(round(self.timeout_s * _MS), 1),
        )

    @staticmethod
    def _addresses(client: KafkaClient) -> list[Address]:
        """Return the addresses of all brokers."""
        return [broker.address for broker in client.view([]).brokers.values()]

    @staticmethod
    def _partitions(client: KafkaClient, topic: str) -> list[TopicPartition]:
        """Return the partitions of a topic."""
        view = client.view_of_existing([topic]).topics[topic]
        return [TopicPartition(topic, row.partition) for row in view.partitions]


def _to_bytes(text: bytes | str | None) -> bytes | None:
    """Return a text as UTF-8; bytes and None are returned unchanged."""
    return text.encode() if isinstance(text, str) else text


def _has_leaders(view: ClusterView, name: str) -> bool:
    """Return True if the topic exists and each of its partitions has a leader."""
    topic = view.topics.get(name)
    return (
        topic is not None and bool(topic.partitions) and all(p.has_leader for p in topic.partitions)
    )


def _request_offsets(
    client: KafkaClient,
    partitions: Iterable[TopicPartition],
    at: int,
    *,
    read_committed: bool = False,
) -> dict[TopicPartition, int]:
    """Return the partitions' offsets at EARLIEST or LATEST; raises the first error."""
    found = {}
    timestamps = dict.fromkeys(partitions, at)
    for key, result in list_offsets(client, timestamps, read_committed=read_committed).items():
        if isinstance(result, EngineError):
            raise result
        found[key] = result.offset
    return found


def _wants_more(
    fetcher: Fetcher,
    ends: Mapping[TopicPartition, int],
    received: list[ReceivedRecord],
    count: int | None,
) -> bool:
    """Return True until `count` records arrived or, without a count, all ends are reached."""
    if count is not None:
        return len(received) < count
    return any(fetcher.position(key) < end for key, end in ends.items())


def _to_received(
    partition: TopicPartition,
    offset: int,
    timestamp_ms: int,
    key: bytes | None,
    value: bytes | None,
    headers: tuple[Header, ...],
) -> ReceivedRecord:
    """Return the fields of a consumed record as a ReceivedRecord."""
    return ReceivedRecord(
        partition.topic, partition.partition, offset, timestamp_ms, key, value, headers
    )


def _missing_at_any(client: KafkaClient, brokers: int) -> list[str]:
    """Return what is missing by the metadata of any broker, as texts.

    Every broker is asked, since the test's next request may go to one with outdated metadata.
    """
    call = Call("Metadata", metadata_request(None), METADATA_LOWEST)
    calls = {row.broker_id: (row.address, call) for row in client.brokers_view().brokers.values()}
    results = client.exchange(calls, client.clock.monotonic_ms() + client.timeout_ms)
    views = [
        cluster_view(result.message)
        for result in results.values()
        if not isinstance(result, EngineError)
    ]
    if len(views) < brokers:
        return [f"answers of {len(views)} of {brokers} brokers"]
    return sorted({description for view in views for description in _missing_parts(view, brokers)})


def _missing_parts(view: ClusterView, brokers: int) -> list[str]:
    """Return missing brokers, and partitions without a leader or all replicas, as texts."""
    missing = [f"{len(view.brokers)} of {brokers} brokers"] if len(view.brokers) < brokers else []
    return missing + [
        f"{topic.name}-{row.partition}"
        for topic in view.topics.values()
        for row in topic.partitions
        if row.is_under_replicated or not row.has_leader
    ]
