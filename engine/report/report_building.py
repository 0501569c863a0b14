"""Builds a report from the gathered facts. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.client.config_admin import ConfigEntry
from engine.client.rates import PartitionRate
from engine.errors import EngineError
from engine.ids import uuid_text
from engine.model import TopicPartition
from engine.report.cluster_report import REPORT_FORMAT, BrokerOverrides, ClusterReport
from engine.report.findings_in_report import certificate_finding, collect_findings
from engine.report.gathering import Gathered, ReportOptions
from engine.report.imbalance import imbalances
from engine.report.report_changes import compare_reports
from engine.report.retention_outlook import RetentionBounds, deletions, topic_retentions
from engine.report.saved_report import (
    ReportedGroup,
    ReportedPartition,
    ReportedTopic,
    SavedReport,
    snapshot_of,
)
from engine.report.setting_differences import setting_differences
from engine.report.topic_risks import topic_risks
from engine.watching.broker_shares import broker_shares
from engine.watching.group_lags import GroupLag, group_lags
from engine.watching.timed_sample import TimedSample, leader_sizes, rate_sum, sample_rates


def build_report(
    gathered: Gathered, options: ReportOptions, since: SavedReport | None = None
) -> ClusterReport:
    """Return the report made of the gathered parts.

    With `since`, an earlier report, it contains the changes from that one.
    """
    last = gathered.samples[-1]
    sample, view = last.sample, last.sample.view
    rates = sample_rates(gathered.samples[0], last) if len(gathered.samples) > 1 else {}
    shares = broker_shares(sample, rates)
    uneven, risks = imbalances(shares), topic_risks(sample)
    differences = setting_differences(gathered.broker_configs)
    groups = group_lags(gathered.samples)
    expiries = [certificate_finding(*row, last.wall_ms) for row in gathered.certificates]
    findings = collect_findings(
        gathered.health,
        groups,
        uneven,
        differences,
        risks,
        [finding for finding in expiries if finding is not None],
        len(view.brokers),
    )
    topics = _reported_topics(last, rates, gathered.topic_configs)
    total = rate_sum(rates, rates)
    bounds = {
        name: RetentionBounds(config.retention_ms, config.retention_bytes)
        for name, config in gathered.log_configs.items()
    }
    report = ClusterReport(
        REPORT_FORMAT,
        last.wall_ms,
        view.cluster_id,
        view.known_controller_id,
        options.interval_ms,
        len(view.brokers),
        len(topics),
        sum(topic.partition_count for topic in topics),
        sum(share.size_bytes or 0 for share in shares),
        total.bytes_per_s,
        total.records_per_s,
        None if since is None else since.made_at_ms,
        tuple(findings),
        (),
        tuple(shares),
        tuple(uneven),
        tuple(differences),
        tuple(risks),
        tuple(map(_reported_group, groups)),
        tuple(topic_retentions(gathered.forecasts, bounds)),
        tuple(deletions(gathered.forecasts.values(), last.wall_ms)),
        tuple(gathered.certificates),
        tuple(topics),
        tuple(_broker_settings(gathered.broker_configs)),
        tuple(gathered.not_known),
    )
    if since is None:
        return report
    return report._replace(changes=tuple(compare_reports(since, saved_form(report))))


def saved_form(report: ClusterReport) -> SavedReport:
    """Return a report as the part of it that `compare_reports` compares.

    It equals what `parse_report` reads from the report's JSON.
    """
    broker_ids = [share.broker_id for share in report.brokers]
    settings = {f"broker {row.broker_id}": row.settings for row in report.broker_settings}
    settings |= {f"topic {topic.topic}": topic.settings for topic in report.topics}
    return SavedReport(
        report.made_at_ms,
        report.cluster_id,
        snapshot_of(report.cluster_id, report.controller_id, broker_ids, list(report.topics)),
        {topic.topic: topic.partition_count for topic in report.topics},
        {topic.topic: topic.size_bytes for topic in report.topics},
        settings,
        {group.group: group.verdict for group in report.groups},
        frozenset((finding.finding, finding.subject) for finding in report.findings),
    )


def _reported_group(group: GroupLag) -> ReportedGroup:
    """Return a group's row of the report: state, lag and verdict without its partitions."""
    lag = group.lag, group.lag_per_s
    return ReportedGroup(
        group.group, group.state, group.member_count, *lag, group.verdict, group.reason
    )


def _reported_topics(
    last: TimedSample,
    rates: Mapping[TopicPartition, PartitionRate],
    configs: Mapping[str, Sequence[ConfigEntry] | EngineError],
) -> list[ReportedTopic]:
    """Return the topics' rows of the report, by name; sizes are those of the leaders' logs."""
    sizes = leader_sizes(last.sample)
    states = []
    for name, topic in sorted(last.sample.view.topics.items()):
        keys = [TopicPartition(name, row.partition) for row in topic.partitions]
        entries = configs.get(name, ())
        states.append(
            ReportedTopic(
                name,
                uuid_text(topic.topic_id),
                len(keys),
                topic.replication_factor,
                sum(sizes.get(key, 0) for key in keys),
                *rate_sum(rates, keys),
                {} if isinstance(entries, EngineError) else _set_values(entries),
                tuple(
                    ReportedPartition(p.partition, p.leader, p.leader_epoch, p.replicas, p.isr)
                    for p in topic.partitions
                ),
            )
        )
    return states


def _broker_settings(
    configs: Mapping[int, Sequence[ConfigEntry] | EngineError],
) -> list[BrokerOverrides]:
    """Return the settings that each broker overrides; brokers with an error are left out."""
    return [
        BrokerOverrides(broker_id, _set_values(entries))
        for broker_id, entries in sorted(configs.items())
        if not isinstance(entries, EngineError)
    ]


def _set_values(entries: Sequence[ConfigEntry]) -> dict[str, str | None]:
    """Return the settings that are not at their defaults, without secrets."""
    return {
        entry.name: entry.value
        for entry in entries
        if not entry.is_default and not entry.is_sensitive
    }
