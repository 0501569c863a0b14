"""A broker's meters, by Kafka's JMX object names.

| domain and type | meters |
|---|---|
| `kafka.server` BrokerTopicMetrics | traffic of all topics, and of each topic with traffic |
| `kafka.server` ReplicaManager | ISR expansions, shrinks, failed updates |
| `kafka.server` SessionExpireListener, FetchSessionCache | expired sessions, evictions |
| `kafka.log` LogFlushStats | fsyncs of segments, and their times |
| `kafka.controller` ControllerStats | unclean elections, events of the controller and their times |
| `kafka.network` RequestMetrics | requests by API and version, their times and sizes by API |

Events are counted where they happen, by one addition each. Every five seconds all rates are
computed from the counts; topics without traffic since the last tick are skipped.

Source: BrokerTopicMetrics, BrokerTopicStats, ReplicaManager, ControllerStats and RequestChannel of
3.9.1. Differs: all meters of a broker tick together; in Kafka each meter ticks five seconds after
its first event.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Mapping
from operator import attrgetter, sub
from typing import Final, NamedTuple

from engine.api.request_metrics import RequestMetrics
from engine.broker.metric_text import BrokerMetric
from engine.broker.storage import Storage
from engine.broker.tasks import LoopTasks
from engine.controller.controller import Controller
from engine.host.ports import Clock
from engine.model import TopicPartition
from engine.replication.replica_manager import IsrCounts
from engine.replication.topic_counts import COUNT_NAMES, BrokerTopicCounts
from engine.timing.histogram import Histogram, TimerReading
from engine.timing.meter import TICK_MS, Meter

_TOPICS: Final = "kafka.server:type=BrokerTopicMetrics,name="
EVICTIONS: Final = "kafka.server:type=FetchSessionCache,name=IncrementalFetchSessionEvictionsPerSec"
FLUSHES: Final = "kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs"
_CONTROLLER: Final = "kafka.controller:type=ControllerStats,name="
_US_PER_MS: Final = 1_000
_REQUESTS: Final = "kafka.network:type=RequestMetrics,name="


class _Kind(NamedTuple):
    """A meter of BrokerTopicMetrics; whether each topic has one, and only on the topic's leader."""

    name: str
    is_of_topics: bool = True
    is_of_leaders: bool = False


_KINDS: Final = {
    "bytes_in": _Kind("BytesInPerSec", is_of_leaders=True),
    "bytes_out": _Kind("BytesOutPerSec"),
    "bytes_rejected": _Kind("BytesRejectedPerSec", is_of_leaders=True),
    "failed_fetches": _Kind("FailedFetchRequestsPerSec"),
    "failed_produces": _Kind("FailedProduceRequestsPerSec", is_of_leaders=True),
    "fetch_conversions": _Kind("FetchMessageConversionsPerSec"),
    "fetches": _Kind("TotalFetchRequestsPerSec"),
    "invalid_checksums": _Kind("InvalidMessageCrcRecordsPerSec", is_of_topics=False),
    "invalid_magics": _Kind("InvalidMagicNumberRecordsPerSec", is_of_topics=False),
    "invalid_offsets": _Kind("InvalidOffsetOrSequenceRecordsPerSec", is_of_topics=False),
    "messages_in": _Kind("MessagesInPerSec", is_of_leaders=True),
    "missing_keys": _Kind("NoKeyCompactedTopicRecordsPerSec", is_of_topics=False),
    "produce_conversions": _Kind("ProduceMessageConversionsPerSec", is_of_leaders=True),
    "produces": _Kind("TotalProduceRequestsPerSec", is_of_leaders=True),
    "reassignment_bytes_in": _Kind("ReassignmentBytesInPerSec", is_of_topics=False),
    "reassignment_bytes_out": _Kind("ReassignmentBytesOutPerSec", is_of_topics=False),
    "replication_bytes_in": _Kind("ReplicationBytesInPerSec", is_of_topics=False),
    "replication_bytes_out": _Kind("ReplicationBytesOutPerSec", is_of_topics=False),
}
_ROWS: Final = [_KINDS[name] for name in COUNT_NAMES]
_OF_LEADERS: Final = [index for index, row in enumerate(_ROWS) if row.is_of_leaders]
_ALL: Final = range(len(_ROWS))
#: The counts of a topic, in the order of COUNT_NAMES.
_values_of: Final = attrgetter(*COUNT_NAMES)


class _Topic:
    """The counts of a topic at the last tick, and its meters with a count above 0."""

    __slots__ = ("meters", "values")

    def __init__(self) -> None:
        self.values: tuple[int, ...] = (0,) * len(COUNT_NAMES)
        self.meters: dict[int, Meter] = {}


class _Replicas:
    """The partitions of a topic on this broker, and those that it leads."""

    __slots__ = ("here", "led")

    def __init__(self) -> None:
        self.here: set[int] = set()
        self.led: set[int] = set()


class BrokerMeters:
    """The meters of one broker; `tick` is called every five seconds."""

    def __init__(
        self,
        counts: BrokerTopicCounts,
        existing: Callable[[], Container[str]],
        others: Callable[[], Mapping[str, int | Histogram]],
        clock: Clock,
    ) -> None:
        """Create the meters of topics and of the broker.

        `existing` returns the topics of the cluster. `others` returns the broker-wide figures by
        JMX object name: the count of a meter, or the histogram of a timer in microseconds.
        """
        self._counts = counts
        self._existing = existing
        self._others = others
        self._clock = clock
        #: Number of the last complete tick. Readings may come between two steps of a tick, and must
        #: not use half of it.
        self._number = 0
        #: Monotonic time of the last tick.
        self._ticked_ms = clock.monotonic_ms()
        #: Meters of each topic with traffic, until the topic is deleted.
        self._topics: dict[str, _Topic] = {}
        #: Sums of the counts over all topics at the last tick, and their meters, in the order of
        #: COUNT_NAMES. Deleted topics stay included.
        self._totals = [0] * len(COUNT_NAMES)
        self._meters = [Meter(self._ticked_ms, 0) for _ in COUNT_NAMES]
        #: Meters of broker-wide figures, by JMX object name.
        self._other_meters: dict[str, Meter] = {}
        #: Counts of the replicas of each topic on this broker.
        self._replicas: dict[str, _Replicas] = {}

    # Roles

    def note_role(self, key: TopicPartition, *, is_leader: bool) -> None:
        """Note whether this broker leads or follows a partition; called after each change of roles.

        After a topic's last leader its leader meters end, while the broker's totals continue.
        Source: ReplicaManager.updateLeaderAndFollowerMetrics.
        """
        replicas = self._replicas.get(key.topic)
        if replicas is None:
            replicas = self._replicas[key.topic] = _Replicas()
        replicas.here.add(key.partition)
        if is_leader:
            replicas.led.add(key.partition)
            return
        replicas.led.discard(key.partition)
        if not replicas.led:
            self._reset(key.topic, _OF_LEADERS)

    def note_stopped(self, key: TopicPartition) -> None:
        """Note that a replica left this broker; after a topic's last one its meters end."""
        replicas = self._replicas.get(key.topic)
        if replicas is None:
            return
        self.note_role(key, is_leader=False)
        replicas.here.discard(key.partition)
        if replicas.here:
            return
        del self._replicas[key.topic]
        self._forget(key.topic)

    def _forget(self, topic: str) -> None:
        """Remove the counts and meters of a topic that is deleted or no longer on this broker."""
        self._reset(topic, _ALL)
        self._counts.by_topic.pop(topic, None)
        self._topics.pop(topic, None)

    def _reset(self, topic: str, indexes: Collection[int]) -> None:
        """Set the counts `indexes` of a topic to 0 and remove their meters.

        The broker's totals stay. Kafka removes a topic's meters when the broker no longer leads (or
        follows) it.
        """
        counts = self._counts.by_topic.get(topic)
        if counts is None:
            return
        counts.add_pending_counts()
        known = self._meters_of_topic(topic)
        values, before = _values_of(counts), list(known.values)
        for index in indexes:
            self._totals[index] += values[index] - before[index]
            before[index] = 0
            known.meters.pop(index, None)
        known.values = tuple(before)
        self._counts.reset_counts(topic, [COUNT_NAMES[index] for index in indexes])

    # Ticks

    def tick(self) -> Iterator[None]:
        """Update the rates of all meters from the counts, one topic for each step.

        This happens every TICK_MS.
        """
        number = self._number + 1
        for topic in list(self._counts.by_topic):
            if topic in self._replicas or topic in self._existing():
                self._tick_topic(topic, number)
            else:
                # The counts come from requests during its deletion, or to the wrong broker.
                self._forget(topic)
            yield
        for meter, total in zip(self._meters, self._totals, strict=True):
            meter.tick(number, total)
        for name, counted in self._others().items():
            self._broker_meter(name).tick(number, _count_of(counted))
        self._number = number
        self._ticked_ms = self._clock.monotonic_ms()

    def _tick_topic(self, topic: str, number: int) -> None:
        """Add a topic's counts since the last tick to its meters and to the broker's totals."""
        counts = self._counts.by_topic.get(topic)
        if counts is None:
            return
        counts.add_pending_counts()
        values = _values_of(counts)
        known = self._meters_of_topic(topic)
        if values == known.values:
            return
        for index, more in enumerate(map(sub, values, known.values)):
            if more:
                self._totals[index] += more
                if _ROWS[index].is_of_topics:
                    self._meter_of(known, index).tick(number, values[index])
        known.values = values

    def _meters_of_topic(self, topic: str) -> _Topic:
        """Return the meters of a topic, created at the first call."""
        known = self._topics.get(topic)
        if known is None:
            known = self._topics[topic] = _Topic()
        return known

    def _meter_of(self, topic: _Topic, index: int) -> Meter:
        """Return a topic's meter of the count `index`.

        A new one starts at the last complete tick.
        """
        meter = topic.meters.get(index)
        if meter is None:
            meter = topic.meters[index] = Meter(self._ticked_ms, self._number)
        return meter

    def _broker_meter(self, name: str) -> Meter:
        """Return a broker-wide meter by JMX name; a new one starts at the last complete tick."""
        meter = self._other_meters.get(name)
        if meter is None:
            meter = self._other_meters[name] = Meter(self._ticked_ms, self._number)
        return meter

    # Reading

    def metrics(self) -> Iterator[BrokerMetric]:
        """Yield the present values of all meters and timers."""
        now_ms = self._clock.monotonic_ms()
        for topic in sorted(self._counts.by_topic):
            yield from self._topic_metrics(topic, now_ms)
        for index, (row, meter) in enumerate(zip(_ROWS, self._meters, strict=True)):
            total = self._counts.total(COUNT_NAMES[index])
            reading = meter.read_rates(self._number, total, now_ms)
            yield BrokerMetric(f"{_TOPICS}{row.name}", reading)
        for name, counted in self._others().items():
            reading = self._broker_meter(name).read_rates(self._number, _count_of(counted), now_ms)
            if isinstance(counted, Histogram):
                yield BrokerMetric(name, TimerReading(reading, counted.reading(_US_PER_MS)))
            else:
                yield BrokerMetric(name, reading)

    def _topic_metrics(self, topic: str, now_ms: int) -> Iterator[BrokerMetric]:
        """Yield the meters of a topic, of those counts that are above 0."""
        counts = self._counts.by_topic.get(topic)
        if counts is None:
            return
        known = self._meters_of_topic(topic)
        counts.add_pending_counts()
        for index, count in enumerate(_values_of(counts)):
            if count and _ROWS[index].is_of_topics:
                meter = self._meter_of(known, index)
                reading = meter.read_rates(self._number, count, now_ms)
                yield BrokerMetric(f"{_TOPICS}{_ROWS[index].name},topic={topic}", reading)


def _count_of(counted: int | Histogram) -> int:
    """Return the count to which a meter is set.

    It is the figure itself, or a histogram's number of values.
    """
    return counted if isinstance(counted, int) else counted.moments.count


def broker_counts(
    isr: IsrCounts, controller: Controller, requests: RequestMetrics, expired_count: int
) -> dict[str, int | Histogram]:
    """Return the broker-wide figures by the JMX names of meters and timers.

    `expired_count` is the number of expired sessions with the metadata store.
    """
    manager = "kafka.server:type=ReplicaManager,name="
    listener = "kafka.server:type=SessionExpireListener,name="
    counts: dict[str, int | Histogram] = {
        f"{manager}FailedIsrUpdatesPerSec": isr.failed_updates,
        f"{manager}IsrExpandsPerSec": isr.expands,
        f"{manager}IsrShrinksPerSec": isr.shrinks,
        f"{_CONTROLLER}UncleanLeaderElectionsPerSec": controller.context.unclean_elections,
        f"{listener}ZooKeeperExpiresPerSec": expired_count,
    }
    for timer, times in controller.event_times.timers.items():
        counts[f"{_CONTROLLER}{timer}"] = times
    for name, version, count in requests.counts():
        place = f"RequestsPerSec,request={name},version={version}"
        counts[f"{_REQUESTS}{place}"] = count
    for name, version, software, software_version, count in requests.deprecated():
        client = f"clientSoftwareName={software},clientSoftwareVersion={software_version}"
        place = f"DeprecatedRequestsPerSec,request={name},version={version},{client}"
        counts[f"{_REQUESTS}{place}"] = count
    for name, error, count in requests.errors():
        counts[f"{_REQUESTS}ErrorsPerSec,request={name},error={error}"] = count
    return counts


def open_meters(
    storage: Storage,
    existing: Callable[[], Container[str]],
    others: Callable[[], Mapping[str, int | Histogram]],
    clock: Clock,
    tasks: LoopTasks,
) -> BrokerMeters:
    """Create a broker's meters; they follow its roles, and a task ticks them."""
    meters = BrokerMeters(storage.replica_manager.topic_counts, existing, others, clock)
    storage.leadership.on_role(
        lambda replica: meters.note_role(replica.topic_partition, is_leader=replica.is_leader),
        meters.note_stopped,
    )
    tasks.every_in_steps("meter-tick", TICK_MS, meters.tick, first_after_ms=TICK_MS)
    return meters
