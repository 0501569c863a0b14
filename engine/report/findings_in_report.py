"""Findings of a report: those of `kctl check`, and those from other parts of the report. Pure.

| finding | severity | when |
|---|---|---|
| those of `findings`, `reader_findings` | as there | as there |
| group | warning | a group has records to read but is stuck, went back, or falls behind |
| uneven | notice | a broker has many more leaders, bytes or writes than the mean |
| setting-differs | notice | brokers have different values of a setting |
| one-replica | notice | partitions of a topic have one replica, though there are several brokers |
| racks | warning | replicas of partitions share a rack, though another rack has none |
| certificate | critical | a certificate has expired or is not trusted |
| certificate | warning, notice | a certificate expires within 7 or 30 days |
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from engine.client.findings import CRITICAL, NOTICE, SEVERITIES, WARNING, HealthFinding
from engine.client.lag_verdicts import LagVerdict
from engine.report.imbalance import Imbalance, is_uneven
from engine.report.setting_differences import SettingDifference
from engine.report.topic_risks import TopicRisk
from engine.watching.group_lags import GroupLag

_DAY_MS: Final = 86_400_000
_SOON_DAYS: Final = 7
_LATER_DAYS: Final = 30


class ReportFinding(NamedTuple):
    """A finding with its meaning for the users of the cluster, and a command to look into it."""

    severity: str
    finding: str
    subject: str
    cause: str
    meaning: str
    command: str


class Advice(NamedTuple):
    """The meaning of a kind of finding, and a command; {} is replaced by topic, broker or group."""

    meaning: str
    command: str


_PARTITION: Final = "kctl explain partition {}"
ADVICE: Final[Mapping[str, Advice]] = {
    "offline": Advice("nobody reads or writes the partition", _PARTITION),
    "silent-leader": Advice(
        "nobody reads or writes the partition until its leader answers", _PARTITION
    ),
    "under-min-isr": Advice("producers with acks=all are refused", _PARTITION),
    "no-controller": Advice("no leader is elected, no topic changes", "kctl brokers list"),
    "store": Advice("no leader is elected, no topic changes", "kctl znode ls /brokers/ids"),
    "unreachable": Advice("clients of its partitions wait", "kctl brokers api-versions {}"),
    "log-dir": Advice("its replicas are offline", "kctl brokers log-dirs {}"),
    "unasked": Advice("the report lacks it", "kctl check"),
    "at-min-isr": Advice("the loss of one more broker stops producers with acks=all", _PARTITION),
    "under-replicated": Advice("fewer copies than there should be", _PARTITION),
    "impossible-min-isr": Advice(
        "producers with acks=all are always refused", "kctl topics describe {}"
    ),
    "not-preferred": Advice(
        "leaders are not where they are meant to be", "kctl leaders balance --dry-run"
    ),
    "move": Advice("replicas are copied, which takes disk and network", "kctl reassign status"),
    "throttle": Advice(
        "replication is slower; without a move it may never catch up", "kctl reassign throttles"
    ),
    "hanging-transaction": Advice(
        "readers of committed records stop there for ever", "kctl transactions find-hanging {}"
    ),
    "long-transaction": Advice(
        "readers of committed records wait for its end", "kctl transactions producers {}"
    ),
    "idle-group": Advice("nobody reads for the group", "kctl groups lag {}"),
    "group": Advice("its readers do not keep up", "kctl groups lag {} --time"),
    "uneven": Advice(
        "the busiest broker limits all of them, and is full first",
        "kctl reassign plan --balance --goals {}",
    ),
    "setting-differs": Advice(
        "brokers do not behave alike", "kctl configs describe {} --broker {brokers} --all"
    ),
    "one-replica": Advice(
        "the loss of one disk loses the records", "kctl topics set-rf 3 {} --dry-run"
    ),
    "racks": Advice(
        "the loss of one rack loses more copies than it needs to", "kctl reassign plan --repair {}"
    ),
    "certificate": Advice(
        "clients refuse the broker's listener from then on", "kctl brokers describe {}"
    ),
}


def add_advice(finding: HealthFinding, argument: str | None = None) -> ReportFinding:
    """Return a finding for the report, with its meaning and a command to look into it.

    The command is run with `argument`; None means the finding's subject.
    """
    advice = ADVICE[finding.kind]
    argument = _argument(finding.subject, advice.command) if argument is None else argument
    command = advice.command.replace("{}", argument).rstrip()
    shown = finding.severity, finding.kind, finding.subject, finding.cause
    return ReportFinding(*shown, advice.meaning, command)


def _argument(subject: str, command: str) -> str:
    """Return the subject of a finding as an argument of a command.

    It is TOPIC:PARTITION for a partition, and the id or name without the word before it for a
    broker, group or topic.
    """
    kind, _, name = subject.partition(" ")
    if kind in ("broker", "group", "topic") and name:
        return shlex.quote(name)
    topic, dash, partition = subject.rpartition("-")
    is_partition = (
        dash and partition.isdecimal() and command.startswith(("kctl explain", "kctl tr"))
    )
    return f"{topic}:{partition}" if is_partition else shlex.quote(subject)


def _group_findings(groups: Sequence[GroupLag]) -> Iterator[ReportFinding]:
    """Yield a warning for each group with members whose lag verdict is not OK."""
    for group in groups:
        # Groups without members (STOP) are among the findings of `kctl check`.
        if group.verdict not in (LagVerdict.OK.value, LagVerdict.STOP.value):
            cause = f"{group.verdict}: {group.reason}"
            yield add_advice(HealthFinding(WARNING, "group", f"group {group.group}", cause))


_GOALS: Final = {"leaders": "leaders", "bytes": "bytes", "rate": "bytes-in"}


def _imbalance_findings(imbalances: Iterable[Imbalance]) -> Iterator[ReportFinding]:
    """Yield a notice for each measure that is unevenly distributed over brokers."""
    for one in imbalances:
        if is_uneven(one):
            cause = f"broker {one.most_broker} has {one.skew:.2f} times the mean of {one.measure}"
            finding = HealthFinding(NOTICE, "uneven", one.measure, cause)
            yield add_advice(finding, _GOALS[one.measure])


def _setting_findings(differences: Iterable[SettingDifference]) -> Iterator[ReportFinding]:
    """Yield a notice for each setting whose values differ between brokers, with all values."""
    for one in differences:
        by_value: dict[str | None, list[int]] = {}
        for broker_id, value in one.values:
            by_value.setdefault(value, []).append(broker_id)
        cause = "; ".join(
            f"{'none' if value is None else repr(value)} on {','.join(map(str, ids))}"
            for value, ids in by_value.items()
        )
        found = add_advice(HealthFinding(NOTICE, "setting-differs", one.setting, cause))
        brokers = " --broker ".join(str(value.broker_id) for value in one.values)
        yield found._replace(command=found.command.replace("{brokers}", brokers))


def _risk_findings(risks: Iterable[TopicRisk], broker_count: int) -> Iterator[ReportFinding]:
    """Yield findings for topics with one replica, or with replicas that share a rack.

    One replica is only a notice, and none in a cluster of one broker. The other risks are findings
    of `kctl check`.
    """
    for one in risks:
        share = f"{one.partition_count} of {one.of_partitions} partitions"
        if one.risk == "one-replica" and broker_count > 1:
            finding = HealthFinding(NOTICE, "one-replica", one.topic, f"{share} have one replica")
            yield add_advice(finding)
        elif one.risk == "racks":
            cause = f"replicas of {share} share a rack, and another has none"
            yield add_advice(HealthFinding(WARNING, "racks", one.topic, cause))


def certificate_finding(
    broker_id: int, expires_at_ms: int | None, reason: str | None, now_ms: int
) -> ReportFinding | None:
    """Return a finding on a broker's certificate, None if it is valid for more than 30 days.

    `expires_at_ms` is None if the certificate could not be verified, for the given `reason`.
    """
    subject = f"broker {broker_id}"
    if expires_at_ms is None:
        cause = f"it is not trusted, or has expired: {reason}"
        return add_advice(HealthFinding(CRITICAL, "certificate", subject, cause))
    days = (expires_at_ms - now_ms) / _DAY_MS
    if days > _LATER_DAYS:
        return None
    if days < 0:
        cause = f"expired {int(-days)} days ago"
        return add_advice(HealthFinding(CRITICAL, "certificate", subject, cause))
    severity = WARNING if days <= _SOON_DAYS else NOTICE
    return add_advice(
        HealthFinding(severity, "certificate", subject, f"expires in {int(days)} days")
    )


def collect_findings(
    health: Iterable[HealthFinding],
    groups: Sequence[GroupLag],
    imbalances: Iterable[Imbalance],
    differences: Iterable[SettingDifference],
    risks: Iterable[TopicRisk],
    certificates: Iterable[ReportFinding],
    broker_count: int,
) -> list[ReportFinding]:
    """Return all findings of a report with advice, the most severe first."""
    found = [
        *(add_advice(finding) for finding in health),
        *_group_findings(groups),
        *certificates,
        *_risk_findings(risks, broker_count),
        *_imbalance_findings(imbalances),
        *_setting_findings(differences),
    ]
    return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))
