"""The report of a cluster as plain values, in the order in which they are shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from engine.report.findings_in_report import ReportFinding
from engine.report.imbalance import Imbalance
from engine.report.report_changes import ReportChange
from engine.report.retention_outlook import Deletion, TopicRetention
from engine.report.saved_report import ReportedGroup, ReportedTopic
from engine.report.setting_differences import SettingDifference
from engine.report.topic_risks import TopicRisk
from engine.watching.broker_shares import BrokerShare

#: Version of the JSON document; documents of other versions are refused.
REPORT_FORMAT: Final = 1


class CertificateExpiry(NamedTuple):
    """Expiry of the certificate of a broker's listener; None with a reason if it is unknown."""

    broker_id: int
    expires_at_ms: int | None
    reason: str | None


class Unknown(NamedTuple):
    """A part of the report that could not be gathered, with the reason."""

    subject: str
    part: str
    reason: str


class BrokerOverrides(NamedTuple):
    """The settings of a broker that are not at their defaults, without secrets."""

    broker_id: int
    settings: Mapping[str, str | None]


class ClusterReport(NamedTuple):
    """The whole report. `controller_id` is None with KRaft, whose brokers do not return it.

    Rates are of the writes within `interval_ms`, None without samples. `since_ms` is the time of
    the report that it was compared with.
    """

    format: int
    made_at_ms: int
    cluster_id: str | None
    controller_id: int | None
    interval_ms: int
    broker_count: int
    topic_count: int
    partition_count: int
    size_bytes: int
    bytes_per_s: int | None
    records_per_s: float | None
    since_ms: int | None
    findings: tuple[ReportFinding, ...]
    changes: tuple[ReportChange, ...]
    brokers: tuple[BrokerShare, ...]
    imbalance: tuple[Imbalance, ...]
    setting_differences: tuple[SettingDifference, ...]
    risks: tuple[TopicRisk, ...]
    groups: tuple[ReportedGroup, ...]
    retention: tuple[TopicRetention, ...]
    deletions: tuple[Deletion, ...]
    certificates: tuple[CertificateExpiry, ...]
    topics: tuple[ReportedTopic, ...]
    broker_settings: tuple[BrokerOverrides, ...]
    not_known: tuple[Unknown, ...]
