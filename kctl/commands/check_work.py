"""What `kctl check` does: ask for facts, make findings of them, print rows; again if it waits."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from engine.client.findings import KINDS, NOTICE, HealthFinding, ask_facts, findings_of
from engine.errors import EngineError
from kctl import exits
from kctl.asking import report_error, say
from kctl.commands.state_nodes import StateNodes
from kctl.connect import ClusterOptions, connect
from kctl.render import Column, check_format, write_rows
from kctl.words import UnreadableWord

FINDING_COLUMNS = (
    Column("severity", "SEVERITY"),
    Column("finding", "FINDING"),
    Column("subject", "OF", is_name=True),
    Column("since", "SINCE", kind="string?"),
    Column("cause", "CAUSE"),
)
#: How often is looked while waiting.
_PERIOD_S = 0.5


class CheckRequest(NamedTuple):
    """The options of `kctl check`; `topics` is None for all."""

    topics: list[str] | None
    ignored: list[str]
    strict: bool
    wait: bool
    zookeeper: str | None
    output: str


def check_cluster(options: ClusterOptions, request: CheckRequest) -> int:
    """Print what is wrong; the exit code is 4 if there is more than notices."""
    check_format(request.output)
    for kind in request.ignored:
        if kind not in KINDS:
            raise UnreadableWord("a finding", kind, ", ".join(KINDS))
    deadline_s = time.monotonic() + options.timeout_s
    while True:
        left_s = max(deadline_s - time.monotonic(), _PERIOD_S)
        try:
            findings, since = _look(options._replace(timeout_s=left_s), request)
        except EngineError as error:
            is_late = time.monotonic() + _PERIOD_S > deadline_s
            if (
                not request.wait
                or is_late
                or getattr(error, "exit_code", exits.FAILED) != exits.UNREACHABLE
            ):
                raise
            time.sleep(_PERIOD_S)
            continue
        problems = [one for one in findings if request.strict or one.severity != NOTICE]
        if not (request.wait and problems) or time.monotonic() + _PERIOD_S > deadline_s:
            break
        time.sleep(_PERIOD_S)
    write_rows(FINDING_COLUMNS, [_row(one, since) for one in findings], request.output)
    if not findings:
        say("nothing is wrong")
    return exits.PROBLEMS_FOUND if problems else exits.OK


def _look(
    options: ClusterOptions, request: CheckRequest
) -> tuple[list[HealthFinding], dict[str, str]]:
    """Return the findings, and since when the set of each partition among them is as it is."""
    with connect(options) as client:
        facts = ask_facts(client, request.topics)
        for topic in facts.view.topics.values():
            if topic.error_code:
                from engine.client.blocking import topic_failure

                failure = topic_failure(facts.view, topic.name)
                if failure is not None:
                    raise failure
        findings = [one for one in findings_of(facts) if one.kind not in request.ignored]
        partitions = [one.partition for one in findings if one.partition is not None]
        try:
            since = StateNodes.of(client, request.zookeeper, options.timeout_s).since(partitions)
        except EngineError as error:
            if request.zookeeper is not None:
                report_error(error)
            since = {}
    return findings, since


def _row(finding: HealthFinding, since: dict[str, str]) -> dict[str, Any]:
    return {
        "severity": finding.severity,
        "finding": finding.kind,
        "subject": finding.subject,
        "since": since.get(finding.subject),
        "cause": finding.cause,
    }
