"""Findings of a report: all kinds have a meaning and a command that exists."""

from __future__ import annotations

import shlex

import pytest

from engine.client.findings import CRITICAL, KINDS, NOTICE, WARNING, HealthFinding
from engine.model import TopicPartition
from engine.report.findings_in_report import (
    ADVICE,
    ReportFinding,
    add_advice,
    certificate_finding,
    collect_findings,
)
from engine.report.imbalance import Imbalance
from engine.report.setting_differences import BrokerValue, SettingDifference
from engine.report.topic_risks import TopicRisk
from engine.watching.group_lags import GroupLag
from tests.cli.commands import all_leaves

DAY_MS = 86_400_000
UNEVEN = Imbalance("rate", "bytes/s", 1 << 20, 0, 2, 2 << 20, 1, 2.0)
DIFFERENT = SettingDifference("num.io.threads", (BrokerValue(1, "8"), BrokerValue(2, None)))


def group(verdict: str) -> GroupLag:
    return GroupLag("it's", "Stable", 1, 1, 9, 1.0, verdict, "t-0: why", ())


def found_by(
    *health: HealthFinding,
    groups: tuple[GroupLag, ...] = (),
    uneven: tuple[Imbalance, ...] = (),
    different: tuple[SettingDifference, ...] = (),
    risks: tuple[TopicRisk, ...] = (),
    broker_count: int = 3,
) -> list[ReportFinding]:
    return collect_findings(health, groups, uneven, different, risks, [], broker_count)


@pytest.mark.parametrize("kind", ADVICE)
def test_the_command_of_a_finding_exists_with_its_options(kind: str) -> None:
    subject = {"uneven": "leaders", "unreachable": "broker 1"}.get(kind, "t-0")
    words = shlex.split(add_advice(HealthFinding(NOTICE, kind, subject, "")).command)[1:]
    leaves = all_leaves()
    name = next(word for word in (" ".join(words[:2]), words[0]) if word in leaves)
    options = {o for p in leaves[name].params for o in (*p.opts, *p.secondary_opts)}
    assert {word for word in words if word.startswith("--")} <= options


def test_every_kind_of_finding_has_advice() -> None:
    assert {*KINDS} <= {*ADVICE}


@pytest.mark.parametrize(
    ("kind", "subject", "command"),
    [
        ("offline", "my-topic-3", "kctl explain partition my-topic:3"),
        ("hanging-transaction", "t-0", "kctl transactions find-hanging t:0"),
        ("unreachable", "broker 2", "kctl brokers api-versions 2"),
        ("log-dir", "broker 2", "kctl brokers log-dirs 2"),
        ("idle-group", "group a b", "kctl groups lag 'a b'"),
        ("impossible-min-isr", "t-1", "kctl topics describe t-1"),
        ("no-controller", "cluster", "kctl brokers list"),
    ],
)
def test_the_command_names_what_the_finding_is_of(kind: str, subject: str, command: str) -> None:
    key = TopicPartition("t", 0)
    assert command == add_advice(HealthFinding(WARNING, kind, subject, "", key)).command


def test_groups_that_do_not_keep_up_are_findings_and_idle_ones_are_those_of_check() -> None:
    found = found_by(groups=(group("STALL"), group("STOP"), group("OK")))
    assert [("group", "STALL: t-0: why")] == [(one.finding, one.cause) for one in found]
    assert "kctl groups lag 'it'\"'\"'s' --time" == found[0].command


def test_uneven_brokers_are_a_finding_with_the_goal_that_helps() -> None:
    (found,) = found_by(uneven=(UNEVEN, UNEVEN._replace(skew=1.1)))
    assert "broker 1 has 2.00 times the mean of rate" == found.cause
    assert found.command.endswith("--balance --goals bytes-in")


def test_a_setting_that_differs_is_shown_with_its_values() -> None:
    (found,) = found_by(different=(DIFFERENT,))
    assert "'8' on 1; none on 2" == found.cause
    command = "kctl configs describe num.io.threads --broker 1 --broker 2 --all"
    assert command == found.command


def test_one_replica_is_a_finding_where_there_are_several_brokers() -> None:
    risks = (TopicRisk("t", "one-replica", 2, 3, 0), TopicRisk("t", "offline", 1, 3, 0))
    assert ["one-replica"] == [one.finding for one in found_by(risks=risks)]
    assert [] == found_by(risks=risks, broker_count=1)


def test_the_worst_comes_first() -> None:
    offline = HealthFinding("critical", "offline", "t-0", "no leader")
    throttle = HealthFinding("notice", "throttle", "broker default", "x=1")
    risks = (TopicRisk("t", "racks", 2, 3, 0),)
    found = found_by(throttle, offline, risks=risks)
    assert ["offline", "racks", "throttle"] == [one.finding for one in found]


@pytest.mark.parametrize(
    ("days", "severity"), [(40, None), (20, "notice"), (3, "warning"), (None, "critical")]
)
def test_a_certificate_is_a_finding_before_it_expires(
    days: int | None, severity: str | None
) -> None:
    expires_at_ms = None if days is None else days * DAY_MS
    found = certificate_finding(1, expires_at_ms, "expired", 0)
    assert severity == (found and found.severity)


@pytest.mark.parametrize(
    ("days", "severity", "cause"),
    [
        (-2.5, CRITICAL, "expired 2 days ago"),
        (0.5, WARNING, "expires in 0 days"),
        (7, WARNING, "expires in 7 days"),
        (7.9, NOTICE, "expires in 7 days"),
        (30, NOTICE, "expires in 30 days"),
        (30.1, None, ""),
    ],
)
def test_a_certificate_is_a_finding_by_the_days_that_are_left(
    days: float, severity: str | None, cause: str
) -> None:
    found = certificate_finding(1, round((days + 1000) * DAY_MS), None, 1000 * DAY_MS)
    assert (None if severity is None else (severity, "broker 1", cause)) == (
        None if found is None else (found.severity, found.subject, found.cause)
    )
