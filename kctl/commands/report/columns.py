"""Columns of a report: each part as a table, and the complete report as one object."""

from __future__ import annotations

from typing import Final, NamedTuple

from kctl.render.columns import Column
from kctl.render.rows import OutputRow
from kctl.render.table import size_text

_BYTES_PER_S = Column("bytes_per_s", "BYTES/S", right=True, is_size=True, kind="integer?")
_RECORDS_PER_S = Column("records_per_s", "RECORDS/S", right=True, kind="number?")

FINDING_COLUMNS = (
    Column("severity", "SEVERITY"),
    Column("finding", "FINDING"),
    Column("subject", "OF", is_name=True),
    Column("cause", "CAUSE"),
    Column("meaning", "MEANING", wide=True),
    Column("command", "GO ON WITH", beneath=True),
)
CHANGE_COLUMNS = (
    Column("change", "CHANGE"),
    Column("subject", "OF", is_name=True),
    Column("before", "BEFORE", kind="string?"),
    Column("after", "AFTER", kind="string?"),
)
BROKER_COLUMNS = (
    Column("broker_id", "BROKER", right=True),
    Column("host", "HOST", is_name=True),
    Column("rack", "RACK", kind="string?"),
    Column("is_controller", "CONTROLLER", kind="boolean", wide=True),
    Column("leader_count", "LEADERS", right=True),
    Column("replica_count", "REPLICAS", right=True),
    Column("out_of_sync_count", "OUT-OF-SYNC", right=True),
    Column("size_bytes", "SIZE", right=True, is_size=True, kind="integer?"),
    Column("usable_bytes", "DISK-FREE", right=True, is_size=True, kind="integer?"),
    _BYTES_PER_S,
    _RECORDS_PER_S,
)
IMBALANCE_COLUMNS = (
    Column("measure", "MEASURE", is_name=True),
    Column("unit", "UNIT"),
    Column("mean", "MEAN", right=True, kind="number"),
    Column("least", "LEAST", right=True, kind="number"),
    Column("least_broker", "BROKER", right=True),
    Column("most", "MOST", right=True, kind="number"),
    Column("most_broker", "BROKER", right=True),
    Column("skew", "MOST/MEAN", right=True, kind="number"),
)
_VALUE_FIELDS = (
    Column("broker_id", "BROKER", right=True),
    Column("value", "VALUE", kind="string?"),
)
SETTING_COLUMNS = (
    Column("setting", "SETTING", is_name=True),
    Column("values", "VALUES", kind="object[]", fields=_VALUE_FIELDS),
)
RISK_COLUMNS = (
    Column("topic", "TOPIC", is_name=True),
    Column("risk", "RISK"),
    Column("partition_count", "PARTITIONS", right=True),
    Column("of_partitions", "OF", right=True),
    Column("first_partition", "FIRST", right=True),
)
GROUP_COLUMNS = (
    Column("group", "GROUP", is_name=True),
    Column("state", "STATE"),
    Column("member_count", "MEMBERS", right=True, kind="integer?"),
    Column("lag", "LAG", right=True),
    Column("lag_per_s", "LAG/S", right=True, kind="number?"),
    Column("verdict", "VERDICT"),
    Column("reason", "WORST PARTITION"),
)
RETENTION_COLUMNS = (
    Column("topic", "TOPIC", is_name=True),
    Column("retention_ms", "RETENTION.MS", right=True),
    Column("retention_bytes", "RETENTION.BYTES", right=True),
    Column("size_bytes", "SIZE", right=True, is_size=True),
    Column("due_bytes", "DUE", right=True, is_size=True),
    Column("next_at_ms", "NEXT", is_time=True, kind="integer?"),
    Column("next_bytes", "THEN", right=True, is_size=True, kind="integer?"),
    Column("bytes_per_day", "A-DAY", right=True, is_size=True, kind="integer?"),
    Column("steady_bytes", "IN-THE-END", right=True, is_size=True, kind="integer?"),
)
DELETION_COLUMNS = (
    Column("at_ms", "AT", is_time=True),
    Column("topic", "TOPIC", is_name=True),
    Column("freed_bytes", "FREED", right=True, is_size=True),
)
CERTIFICATE_COLUMNS = (
    Column("broker_id", "BROKER", right=True),
    Column("expires_at_ms", "EXPIRES", is_time=True, kind="integer?"),
    Column("reason", "REASON", kind="string?"),
)
_PARTITION_FIELDS = (
    Column("partition", "PARTITION", right=True),
    Column("leader", "LEADER", right=True),
    Column("leader_epoch", "EPOCH", right=True),
    Column("replicas", "REPLICAS", kind="integer[]"),
    Column("isr", "ISR", kind="integer[]"),
)
TOPIC_COLUMNS = (
    Column("topic", "TOPIC", is_name=True),
    Column("topic_id", "ID", wide=True),
    Column("partition_count", "PARTITIONS", right=True),
    Column("replication_factor", "REPLICAS", right=True),
    Column("size_bytes", "SIZE", right=True, is_size=True),
    _BYTES_PER_S,
    _RECORDS_PER_S,
    Column("settings", "SETTINGS", wide=True, kind="string?{}"),
    Column("partitions", "STATES", wide=True, kind="object[]", fields=_PARTITION_FIELDS),
)
BROKER_SETTING_COLUMNS = (
    Column("broker_id", "BROKER", right=True),
    Column("settings", "SETTINGS", kind="string?{}"),
)
UNKNOWN_COLUMNS = (
    Column("subject", "OF", is_name=True),
    Column("part", "PART"),
    Column("reason", "REASON"),
)


class Part(NamedTuple):
    """A part of a report: its field, title, meaning and columns."""

    key: str
    title: str
    meaning: str
    columns: tuple[Column, ...]


def shown_rows(part: Part, document: OutputRow) -> list[OutputRow]:
    """Return the rows of one section of a report for tables, with bytes as readable sizes."""
    rows: list[OutputRow] = document[part.key]
    if part.key != "imbalance":
        return rows
    return [
        row | {key: f"{size_text(round(row[key]))}{per}" for key in ("mean", "least", "most")}
        if (per := _PER_UNIT.get(row["unit"])) is not None
        else row
        for row in rows
    ]


_PER_UNIT: Final = {"bytes": "", "bytes/s": "/s"}
#: Parts of tables and pages, in order.
PARTS: Final = (
    Part("findings", "Findings", "The worst first.", FINDING_COLUMNS),
    Part("changes", "Changes", "Since the saved report.", CHANGE_COLUMNS),
    Part("brokers", "Brokers", "What each holds, and is written to it.", BROKER_COLUMNS),
    Part(
        "imbalance",
        "Imbalance",
        "The busiest broker by the mean: 1.0 is even.",
        IMBALANCE_COLUMNS,
    ),
    Part(
        "setting_differences",
        "Settings that differ between brokers",
        "Without ids, addresses and directories.",
        SETTING_COLUMNS,
    ),
    Part("risks", "Topics at risk", "Partitions with too few or misplaced replicas.", RISK_COLUMNS),
    Part("groups", "Groups", "Verdicts are those of kctl groups lag.", GROUP_COLUMNS),
    Part(
        "retention",
        "Retention",
        "What is due now, what goes next, and the size in the end.",
        RETENTION_COLUMNS,
    ),
    Part("deletions", "Deletions to come", "By the hour, as far as is known.", DELETION_COLUMNS),
    Part("certificates", "Certificates", "Of the brokers' listeners.", CERTIFICATE_COLUMNS),
    Part("topics", "Topics", "Bytes at the leaders, and what is written.", TOPIC_COLUMNS),
    Part("not_known", "Not known", "What could not be asked for.", UNKNOWN_COLUMNS),
)
_OBJECTS: Final = tuple(
    Column(part.key, part.title, kind="object[]", fields=part.columns) for part in PARTS
)
#: Columns of the complete report as one object.
REPORT_COLUMNS: Final = (
    Column("format", "FORMAT", kind="integer"),
    Column("made_at_ms", "MADE", is_time=True),
    Column("cluster_id", "CLUSTER", kind="string?"),
    Column("controller_id", "CONTROLLER", kind="integer?"),
    Column("interval_ms", "INTERVAL", kind="integer"),
    Column("broker_count", "BROKERS", kind="integer"),
    Column("topic_count", "TOPICS", kind="integer"),
    Column("partition_count", "PARTITIONS", kind="integer"),
    Column("size_bytes", "SIZE", is_size=True),
    _BYTES_PER_S,
    _RECORDS_PER_S,
    Column("since_ms", "SINCE", is_time=True, kind="integer?"),
    *_OBJECTS,
    Column("broker_settings", "SETTINGS", kind="object[]", fields=BROKER_SETTING_COLUMNS),
)
