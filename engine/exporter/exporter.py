"""The state of an exporter between scrapes: the last result, counters, histories.

A scrape within the minimum interval after the previous one gets the same result: however many
clients scrape, the cluster gets requests once per interval. Not safe for use by several threads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.errors import EngineError
from engine.exporter.broker_metrics import metric_families
from engine.exporter.cluster_metrics import cluster_metrics
from engine.exporter.cluster_sample import ClusterSample, RequestFailure
from engine.exporter.gathering import gather_sample
from engine.exporter.group_metrics import group_metrics
from engine.exporter.lag_times import EndHistory
from engine.exporter.metric_family import COUNTER, MetricFamily, only
from engine.exporter.view_changes import (
    ChangeKind,
    ClusterSnapshot,
    changes_between,
    newest_snapshot,
)
from engine.model import TopicPartition
from engine.timing.histogram import MetricValue

#: Ages at which cleanup policies and certificates are read again.
_POLICIES_AGE_MS: Final = 300_000
_CERTIFICATES_AGE_MS: Final = 3_600_000
_CERTIFICATE_WAIT_S: Final = 2.0
_MS_PER_S: Final = 1000

#: Returns the expiry of the certificate at an address, in ms since the epoch.
ExpiryOf = Callable[[str, int, float], int]
#: Returns metrics of embedded brokers by broker and name; none for other clusters.
MetricsOf = Callable[[], Mapping[int, Mapping[str, MetricValue]]]


class ExporterOptions(NamedTuple):
    """The options of an exporter: minimum interval, timeout of a scrape, with groups or not."""

    version: str
    min_interval_ms: int = 10_000
    timeout_ms: int = 8_000
    has_groups: bool = True


class Exporter:
    """Returns the metrics of one cluster for each scrape."""

    def __init__(
        self,
        client: KafkaClient,
        options: ExporterOptions,
        expiry_of: ExpiryOf | None = None,
        metrics_of: MetricsOf = dict,
    ) -> None:
        """`expiry_of` is None if connections are not encrypted.

        `metrics_of` returns the metrics of embedded brokers by id.
        """
        self._metrics_of = metrics_of
        self._client = client
        self._options = options
        self._expiry_of = expiry_of
        #: Metrics of the last scrape, also returned within the minimum interval.
        self._families: list[MetricFamily] = []
        #: Monotonic time at which the last scrape ended, None before.
        self._done_ms: int | None = None
        #: The cluster at the last scrape, to count changes; None before.
        self._snapshot: ClusterSnapshot | None = None
        self._changes: Counter[ChangeKind] = Counter()
        #: Earlier log end offsets, for lag in seconds.
        self._history = EndHistory()
        #: cleanup.policy of topics, and the monotonic time at which it was read.
        self._policies: Mapping[str, str] = {}
        self._policies_ms: int | None = None
        #: Expiry of each broker's certificate, and the monotonic time at which it was read.
        self._expiries: dict[int, int] = {}
        self._expiries_ms: int | None = None
        #: True if the last scrape reached the cluster.
        self.is_up = False

    def families(self) -> list[MetricFamily]:
        """Return all metric families, or those of the last scrape if it is recent. Never raises.

        It is recent for `min_interval_ms`, so that several Prometheus servers cause no more
        requests.
        """
        now_ms = self._client.clock.monotonic_ms()
        if self._done_ms is None or now_ms - self._done_ms >= self._options.min_interval_ms:
            self._families = list(self._scrape(now_ms))
            self._done_ms = self._client.clock.monotonic_ms()
        return self._families

    def _scrape(self, began_ms: int) -> Iterator[MetricFamily]:
        """Take a sample of the cluster and yield all metric families.

        `began_ms` is the monotonic time of the start. If no broker responds, only the families
        about the exporter itself are there.
        """
        wants_policies = _is_due(self._policies_ms, began_ms, _POLICIES_AGE_MS)
        try:
            sample = gather_sample(
                self._client,
                self._options.timeout_ms,
                with_policies=wants_policies,
                with_groups=self._options.has_groups,
            )
        except EngineError as error:
            self.is_up = False
            failure = RequestFailure(-1, "Metadata", error)
            yield from self._exporter_families((failure,), began_ms)
            return
        self.is_up = True
        if sample.cleanup_policies:
            self._policies, self._policies_ms = sample.cleanup_policies, began_ms
        self._note_sample(sample)
        yield from cluster_metrics(sample, self._policies)
        if self._options.has_groups:
            yield from group_metrics(sample, self._history, self._client.clock.monotonic_ms())
        yield from self._certificate_families(sample, began_ms)
        failures = sample.failures
        try:
            yield from metric_families(self._metrics_of())
        except EngineError as error:
            # Another command may hold the lock: the next scrape returns them.
            failures = (*failures, RequestFailure(-1, "metrics", error))
        yield from self._exporter_families(failures, began_ms)

    def _note_sample(self, sample: ClusterSample) -> None:
        """Count the changes since the last scrape, and store the partitions' end offsets.

        The end offsets are used for the lag of groups in seconds.
        """
        moving = None if sample.moves is None else frozenset(sample.moves)
        snapshot = ClusterSnapshot(sample.view, moving)
        if self._snapshot is not None:
            snapshot = newest_snapshot(self._snapshot, snapshot)
            for change in changes_between(self._snapshot, snapshot):
                self._changes[change.kind] += 1
        self._snapshot = snapshot
        known = {
            TopicPartition(name, row.partition)
            for name, topic in sample.view.topics.items()
            for row in topic.partitions
        }
        ends = dict(sample.high_watermarks)
        self._history.add_ends(ends, self._client.clock.monotonic_ms(), known)

    def _exporter_families(
        self, failures: tuple[RequestFailure, ...], began_ms: int
    ) -> Iterator[MetricFamily]:
        """Yield families about the scrape: failures, duration, changes seen so far."""
        text = "1, and 0 if a request of the last scrape failed."
        rows = [((self._options.version,), float(not failures))]
        yield MetricFamily("kminion_exporter_up", text, ("version",), rows)
        text = "Whether any broker answers."
        yield MetricFamily("kctl_exporter_cluster_up", text, (), only(self.is_up))
        counts = Counter((str(f.broker_id), f.api_name, _name_of(f.error)) for f in failures)
        labels = ("broker_id", "request", "error")
        failed = [(key, float(count)) for key, count in sorted(counts.items())]
        text = "Requests of the last scrape that failed."
        yield MetricFamily("kctl_exporter_failed_requests", text, labels, failed)
        lasted_s = (self._client.clock.monotonic_ms() - began_ms) / _MS_PER_S
        text = "How long the last scrape of the cluster took."
        yield MetricFamily("kctl_exporter_scrape_seconds", text, (), only(lasted_s))
        changes = [((kind.value,), float(self._changes[kind])) for kind in ChangeKind]
        text = "Changes of the cluster that were seen between two scrapes."
        yield MetricFamily("kctl_kafka_changes", text, ("change",), changes, COUNTER)

    def _certificate_families(self, sample: ClusterSample, now_ms: int) -> Iterator[MetricFamily]:
        """Yield the family with the expiry of each broker's certificate.

        Certificates are read every few hours only; without `expiry_of` there is no family.
        """
        if self._expiry_of is None:
            return
        if _is_due(self._expiries_ms, now_ms, _CERTIFICATES_AGE_MS):
            self._expiries_ms = now_ms
            self._read_certificates(sample, self._expiry_of)
        rows = [
            ((str(id_),), at / _MS_PER_S)
            for id_, at in sorted(self._expiries.items())
            if id_ in sample.view.brokers
        ]
        name = "kctl_kafka_certificate_expiry_timestamp_seconds"
        text = "When the certificate of a broker's listener expires, in seconds since the epoch."
        yield MetricFamily(name, text, ("broker_id",), rows)

    def _read_certificates(self, sample: ClusterSample, expiry_of: ExpiryOf) -> None:
        """Connect to each responding broker to read when its certificate expires.

        After an error its last known expiry is kept.
        """
        for broker_id, broker in sorted(sample.view.brokers.items()):
            if broker_id in sample.silent:
                continue
            # An expired certificate cannot be read: its last known expiry is kept.
            with suppress(EngineError):
                self._expiries[broker_id] = expiry_of(*broker.address, _CERTIFICATE_WAIT_S)


def _is_due(done_ms: int | None, now_ms: int, age_ms: int) -> bool:
    """Return True if an action was never done (None), or at least `age_ms` ago."""
    return done_ms is None or now_ms - done_ms >= age_ms


def _name_of(error: EngineError) -> str:
    """Return the short name of an error: Kafka's name, else that of its type."""
    return str(getattr(error, "name", None) or type(error).__name__)
