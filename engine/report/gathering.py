"""The requests of a report.

1. What `kctl check` requests: the state of the cluster, and the causes of blocked readers.
2. Samples as of the exporter over an interval, for rates and for the verdicts on groups.
3. The settings of all brokers and topics.
4. For the forecast: offsets at points in time of the topics from which retention deletes.
5. The certificates of brokers, if connections are encrypted.

If a request fails, its part of the report is left out and listed as unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.config_admin import (
    ConfigEntry,
    ConfigResourceType,
    Resource,
    describe_configs,
)
from engine.client.fact_gathering import gather_facts
from engine.client.findings import HealthFinding, findings_of
from engine.client.metadata import ClusterView
from engine.client.reader_findings import ReaderThresholds, reader_findings
from engine.client.reader_gathering import gather_reader_facts
from engine.errors import EngineError
from engine.forecast.cluster_history import request_histories
from engine.forecast.local_history import read_local_histories
from engine.forecast.retention_forecast import RetentionForecast, forecast_retention
from engine.forecast.topic_settings import log_config
from engine.host.ports import Files
from engine.log.log_config import LogConfig
from engine.model import TopicPartition
from engine.report.cluster_report import CertificateExpiry, Unknown
from engine.watching.timed_sample import TimedSample, take_sample

_CERTIFICATE_WAIT_S: Final = 2.0

#: Returns the expiry of the certificate at an address, in ms since the epoch.
ExpiryOf = Callable[[str, int, float], int]
_Configs = Mapping[str, "Sequence[ConfigEntry] | EngineError"]


class ReportOptions(NamedTuple):
    """Options of a report: the interval, the number of samples in it, the timeout of each step.

    Five samples in 10 s are close enough to see a commit every 5 s.
    """

    interval_ms: int = 10_000
    sample_count: int = 5
    timeout_ms: int = 10_000


class Gathered(NamedTuple):
    """What a report is made from; `forecasts` were made with the settings in `log_configs`."""

    samples: Sequence[TimedSample]
    health: Sequence[HealthFinding]
    broker_configs: Mapping[int, Sequence[ConfigEntry] | EngineError]
    topic_configs: _Configs
    log_configs: Mapping[str, LogConfig]
    forecasts: Mapping[TopicPartition, RetentionForecast]
    certificates: Sequence[CertificateExpiry]
    not_known: Sequence[Unknown]


def gather_report(
    client: KafkaClient,
    options: ReportOptions,
    *,
    expiry_of: ExpiryOf | None = None,
    local_files: Files | None = None,
) -> Gathered:
    """Request all parts of a report; this takes the sampling interval and some seconds.

    `expiry_of` returns when a broker's certificate expires; None if connections are not encrypted.
    With `local_files` the logs are on this machine, and forecasts are exact. Errors: those of
    requesting metadata; other parts that fail are listed as not known.
    """
    gathering = _Gathering(client, options)
    health = gathering.health()
    samples = gathering.samples()
    view = samples[-1].sample.view
    broker_configs = gathering.broker_configs(view)
    topic_configs = gathering.topic_configs(view)
    log_configs = _log_configs(topic_configs)
    forecasts = gathering.forecasts(samples[-1], log_configs, local_files)
    certificates = [] if expiry_of is None else list(gathering.certificates(view, expiry_of))
    return Gathered(
        samples,
        health,
        broker_configs,
        topic_configs,
        log_configs,
        forecasts,
        certificates,
        gathering.not_known,
    )


class _Gathering:
    """The steps of gathering, with a list of what could not be gathered."""

    def __init__(self, client: KafkaClient, options: ReportOptions) -> None:
        self._client = client
        self._options = options
        self.not_known: list[Unknown] = []

    def _record_unknown(self, subject: str, part: str, error: EngineError) -> None:
        """Record that a part of the report could not be requested, with the error."""
        self.not_known.append(Unknown(subject, part, str(error)))

    def health(self) -> list[HealthFinding]:
        """Return the findings of `kctl check` on the cluster and its consumer groups."""
        client, timeout_ms = self._client, self._options.timeout_ms
        facts = gather_facts(client, None, timeout_ms)
        thresholds = ReaderThresholds()
        deadline_ms = client.clock.monotonic_ms() + timeout_ms
        readers = gather_reader_facts(client, facts.view, facts.silent, thresholds, deadline_ms)
        return [*findings_of(facts), *reader_findings(readers, thresholds)]

    def samples(self) -> list[TimedSample]:
        """Take the samples, evenly spaced over the interval, and return them in order of time.

        The failed requests of the last one are listed as not known.
        """
        options, clock = self._options, self._client.clock
        began_ms = clock.monotonic_ms()
        samples = []
        for number in range(options.sample_count):
            due_ms = began_ms + options.interval_ms * number // max(options.sample_count - 1, 1)
            self._client.connections.pause(max(due_ms - clock.monotonic_ms(), 0))
            samples.append(take_sample(self._client, options.timeout_ms))
        for failure in samples[-1].sample.failures:
            self._record_unknown(f"broker {failure.broker_id}", failure.api_name, failure.error)
        return samples

    def broker_configs(self, view: ClusterView) -> dict[int, Sequence[ConfigEntry] | EngineError]:
        """Request the settings of all brokers; return them, or the error, by broker id."""
        resources = [Resource(ConfigResourceType.BROKER, str(id_)) for id_ in sorted(view.brokers)]
        described = describe_configs(self._client, resources)
        for resource, entries in described.items():
            if isinstance(entries, EngineError):
                self._record_unknown(f"broker {resource.name}", "settings", entries)
        return {int(resource.name): entries for resource, entries in described.items()}

    def topic_configs(self, view: ClusterView) -> dict[str, Sequence[ConfigEntry] | EngineError]:
        """Request the settings of all topics; return them, or the error, by topic name.

        If the request fails as a whole, the result is empty. All errors are listed as not known.
        """
        resources = [Resource(ConfigResourceType.TOPIC, name) for name in sorted(view.topics)]
        try:
            described = describe_configs(self._client, resources) if resources else {}
        except EngineError as error:
            self._record_unknown("cluster", "settings of topics", error)
            return {}
        for resource, entries in described.items():
            if isinstance(entries, EngineError):
                self._record_unknown(f"topic {resource.name}", "settings", entries)
        return {resource.name: entries for resource, entries in described.items()}

    def forecasts(
        self, last: TimedSample, configs: Mapping[str, LogConfig], local_files: Files | None
    ) -> dict[TopicPartition, RetentionForecast]:
        """Return retention forecasts by partition.

        Only topics from which retention deletes and whose leaders respond have them; errors are
        listed as not known.
        """
        names = [name for name in sorted(configs) if self._is_forecast(name, last, configs[name])]
        now_ms = self._client.clock.wall_ms()
        cuts_ms = {now_ms - configs[name].retention_ms for name in names}
        forecasts = {}
        try:
            histories = request_histories(self._client, names, cuts_ms) if names else {}
            if names and local_files is not None:
                histories |= read_local_histories(self._client, local_files, names)
        except EngineError as error:
            self._record_unknown("cluster", "retention", error)
            return {}
        for key, log in histories.items():
            if isinstance(log, EngineError):
                self._record_unknown(str(key), "retention", log)
            else:
                forecasts[key] = forecast_retention(log, configs[key.topic], now_ms)
        return forecasts

    def _is_forecast(self, name: str, last: TimedSample, config: LogConfig) -> bool:
        """Return True if the retention of a topic can be forecast.

        It can if retention deletes its records by time or size and all its leaders respond. A
        leader that does not is listed as not known.
        """
        if not config.is_deleting or max(config.retention_ms, config.retention_bytes) < 0:
            return False
        sample = last.sample
        rows = sample.view.topics[name].partitions
        is_served = all(r.has_leader and r.leader not in sample.silent for r in rows)
        if not is_served:
            reason = "not all of its partitions have a leader that answers"
            self.not_known.append(Unknown(f"topic {name}", "retention", reason))
        return is_served and bool(rows)

    def certificates(self, view: ClusterView, expiry_of: ExpiryOf) -> list[CertificateExpiry]:
        """Connect to each broker, and return the expiry of its certificate or the error."""
        found = []
        for broker_id, broker in sorted(view.brokers.items()):
            try:
                expires_at_ms = expiry_of(*broker.address, _CERTIFICATE_WAIT_S)
                found.append(CertificateExpiry(broker_id, expires_at_ms, None))
            except EngineError as error:
                found.append(CertificateExpiry(broker_id, None, str(error)))
        return found


def _log_configs(topic_configs: _Configs) -> dict[str, LogConfig]:
    """Return the log settings of each topic whose configs were returned, by name."""
    configs = {}
    for name, entries in topic_configs.items():
        if not isinstance(entries, EngineError):
            own_values = {entry.name: entry.value for entry in entries if entry.value is not None}
            configs[name] = log_config(own_values)
    return configs
