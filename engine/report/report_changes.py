"""The changes between an earlier report and a newer one. Pure.

| change | subject | before, after |
|---|---|---|
| those of `view_changes` | a topic, a partition, a broker, the cluster | broker ids |
| partitions-added | a topic | their number |
| replicas-changed | a partition | broker ids |
| setting-changed | a broker or topic with the setting | values, None at the default |
| group-verdict | a group | verdicts, None where there was no such group |
| finding-new, finding-gone | a finding and its subject | – |
| grew, shrank | a topic | bytes |

A topic has grown or shrunk if its size differs by a tenth or more, and by at least 1 MiB.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from engine.exporter.view_changes import changes_between
from engine.model import TopicPartition
from engine.report.saved_report import SavedReport

_SHARE: Final = 10
_BYTES_MIN: Final = 1 << 20


class ReportChange(NamedTuple):
    """A change, as texts."""

    change: str
    subject: str
    before: str | None = None
    after: str | None = None


def compare_reports(before: SavedReport, after: SavedReport) -> list[ReportChange]:
    """Return the changes from the report `before` to a newer one, the changes of findings first."""
    return [
        *_finding_changes(before, after),
        *_cluster_changes(before, after),
        *_partition_changes(before, after),
        *_setting_changes(before, after),
        *_group_changes(before, after),
        *_size_changes(before, after),
    ]


def _finding_changes(before: SavedReport, after: SavedReport) -> Iterator[ReportChange]:
    """Yield the new findings, then those that are gone.

    Findings are compared by kind and subject, not by cause.
    """
    for kind, subject in sorted(after.findings - before.findings):
        yield ReportChange("finding-new", f"{kind}: {subject}")
    for kind, subject in sorted(before.findings - after.findings):
        yield ReportChange("finding-gone", f"{kind}: {subject}")


def _cluster_changes(before: SavedReport, after: SavedReport) -> Iterator[ReportChange]:
    """Yield the changes of brokers, topics, leaders and the controller."""
    for change in changes_between(before.snapshot, after.snapshot):
        subject = "cluster"
        if change.topic is not None:
            has_partition = change.partition is not None
            subject = f"{change.topic}-{change.partition}" if has_partition else change.topic
        elif change.broker_id is not None:
            subject = f"broker {change.broker_id}"
        yield ReportChange(change.kind.value, subject, _ids(change.before), _ids(change.after))


def _partition_changes(before: SavedReport, after: SavedReport) -> Iterator[ReportChange]:
    """Yield topics with more partitions, and partitions with other replicas.

    A topic that was deleted and created again, which has another id, is skipped.
    """
    old, new = before.snapshot.view, after.snapshot.view
    for name in sorted(old.topics.keys() & new.topics.keys()):
        if old.topics[name].topic_id != new.topics[name].topic_id:
            continue
        counts = before.partition_counts[name], after.partition_counts[name]
        if counts[0] != counts[1]:
            yield ReportChange("partitions-added", name, str(counts[0]), str(counts[1]))
        for row in new.topics[name].partitions:
            known = old.partition(TopicPartition(name, row.partition))
            if known is not None and known.replicas != row.replicas:
                places = _ids(known.replicas), _ids(row.replicas)
                yield ReportChange("replicas-changed", f"{name}-{row.partition}", *places)


def _setting_changes(before: SavedReport, after: SavedReport) -> Iterator[ReportChange]:
    """Yield the settings of brokers and topics whose values differ.

    Brokers and topics that are not in both reports are skipped.
    """
    for owner in sorted(before.settings.keys() & after.settings.keys()):
        old, new = before.settings[owner], after.settings[owner]
        for key in sorted(old.keys() | new.keys()):
            if old.get(key) != new.get(key):
                yield ReportChange("setting-changed", f"{owner} {key}", old.get(key), new.get(key))


def _group_changes(before: SavedReport, after: SavedReport) -> Iterator[ReportChange]:
    """Yield the groups whose lag verdict differs; a missing group has the verdict None."""
    for name in sorted(before.groups.keys() | after.groups.keys()):
        old, new = before.groups.get(name), after.groups.get(name)
        if old != new:
            yield ReportChange("group-verdict", name, old, new)


def _size_changes(before: SavedReport, after: SavedReport) -> Iterator[ReportChange]:
    """Yield topics whose size changed by a tenth or more, and by at least 1 MiB."""
    for name in sorted(before.sizes.keys() & after.sizes.keys()):
        old, new = before.sizes[name], after.sizes[name]
        difference = abs(new - old)
        if difference >= _BYTES_MIN and difference * _SHARE >= old:
            change = "grew" if new > old else "shrank"
            yield ReportChange(change, name, str(old), str(new))


def _ids(broker_ids: tuple[int, ...]) -> str | None:
    """Return broker ids as text such as `1,2`, None if there are none."""
    return ",".join(map(str, broker_ids)) or None
