"""What `-o json` of each command is, as JSON Schema draft 2020-12.

`OUTPUTS` names the columns of every command that has `-o`; the columns say what their values are.
`-o ndjson` has a row a line, `-o yaml` is the same document.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple

from engine.errors import EngineError
from kctl import exits
from kctl.render.columns import Column

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
Schema = dict[str, Any]


class JsonOutput(NamedTuple):
    """What a command prints: columns as `module.NAME` below kctl, `+` between parts of a row.

    `rows` are the kinds of rows that there can be; none stand for rows of any keys. `note` says
    what decides.
    """

    rows: tuple[str, ...]
    is_object: bool = False
    note: str = ""


def _rows(*kinds: str, note: str = "") -> JsonOutput:
    return JsonOutput(kinds, note=note)


def _object(columns: str) -> JsonOutput:
    return JsonOutput((columns,), is_object=True)


_CONFIGS: Final = "configs_work.CONFIG_COLUMNS+configs_work.DOCUMENTATION_COLUMN"
_STAT: Final = "znode_work.PLAIN_STAT_COLUMNS"

_JOB: Final = _rows(
    "reassign_execute.END_COLUMNS",
    "reassign_plan.CHANGE_COLUMNS",
    note="rows with batch are those of --dry-run",
)

OUTPUTS: Final[dict[str, JsonOutput]] = {
    "topics list": _rows(
        "topics_show.LIST_COLUMNS+topics_show.SIZE_COLUMN+topics_rates.TOPIC_RATE_COLUMNS"
    ),
    "topics describe": _rows("topics_show.TOPIC_COLUMNS"),
    "topics create": _rows("topics_change.CREATE_COLUMNS"),
    "topics alter": _rows("topics_change.ALTER_COLUMNS"),
    "topics delete": _rows("topics_change.DELETE_COLUMNS"),
    "topics configs": _rows(_CONFIGS),
    "topics set-rf": _JOB,
    "configs describe": _rows(_CONFIGS),
    "configs set": _rows("configs_work.CHANGE_COLUMNS"),
    "configs unset": _rows("configs_work.CHANGE_COLUMNS"),
    "produce": _rows("produce_report.BATCH_COLUMNS"),
    "consume": _rows(
        ".record_rows.RECORD_COLUMNS+.record_rows.DECODED_COLUMNS",
        note="decoded_key and decoded_value are there with --schemas or --schema-registry",
    ),
    "offsets get": _rows(
        "offsets_work.RANGE_COLUMNS",
        "offsets_work.POINT_COLUMNS",
        note="rows with offset are those of --at",
    ),
    "records delete": _rows("offsets_work.DELETE_COLUMNS"),
    "retention plan": _rows(
        "retention_work.PLAN_COLUMNS+retention_work.CHART_COLUMN",
        "retention_work.TOPIC_COLUMNS+retention_work.CHART_COLUMN",
        "retention_work.UPCOMING_COLUMNS",
        "retention_work.ADVICE_COLUMNS",
        note="rows with partitions are those of --by-topic, with at_ms of --upcoming, with "
        "budget_bytes of --advise",
    ),
    "retention run": _rows("retention_run.RUN_COLUMNS"),
    "compact plan": _rows(
        "compact_rows.PLAN_COLUMNS+compact_rows.EXACT_COLUMNS+compact_rows.CHART_COLUMN",
        note="freed_bytes, left_bytes and freed_records are there with --exact",
    ),
    "compact run": _rows(
        "compact_rows.RUN_COLUMNS",
        "compact_rows.CLUSTER_RUN_COLUMNS",
        note="rows with broker are those of a cluster",
    ),
    "compact status": _rows("compact_rows.STATUS_COLUMNS"),
    "brokers list": _rows("brokers_work.LIST_COLUMNS"),
    "brokers describe": _rows("brokers_work.DESCRIBE_COLUMNS"),
    "brokers drain": _JOB,
    "brokers replace": _JOB,
    "brokers log-dirs": _rows(
        "brokers_work.LOG_DIR_COLUMNS",
        "brokers_work.REPLICA_COLUMNS",
        note="rows with topic are those of --replicas",
    ),
    "brokers api-versions": _rows("brokers_work.API_COLUMNS"),
    "leaders list": _rows(
        "leaders_work.LEADER_COLUMNS",
        "leaders_work.BROKER_COLUMNS",
        note="rows without topic are those of --by-broker",
    ),
    "leaders elect": _rows("leaders_work.ELECTION_COLUMNS"),
    "leaders balance": _rows(
        "leaders_work.ELECTION_COLUMNS",
        "reassign_execute.END_COLUMNS",
        "reassign_plan.CHANGE_COLUMNS",
        note="rows with old_replicas are those of --reorder, with batch of its --dry-run",
    ),
    "leaders demote": _JOB,
    "reassign plan": _rows(
        "reassign_plan.BROKER_COLUMNS+reassign_plan.RATE_COLUMNS",
        "reassign_plan.CHANGE_COLUMNS",
        "reassign_plan.FRONT_COLUMNS+reassign_plan.FRONT_RATE_COLUMNS",
        note="rows with topic are those of --changes, those with unmet of --front",
    ),
    "reassign execute": _rows(
        "reassign_execute.END_COLUMNS",
        "reassign_plan.CHANGE_COLUMNS",
        note="rows with batch are those of --dry-run",
    ),
    "reassign resume": _rows("reassign_execute.END_COLUMNS"),
    "reassign throttles": _rows("reassign_throttles.THROTTLE_COLUMNS"),
    "reassign cancel": _rows(
        "reassign_cancel.CANCEL_COLUMNS",
        "reassign_execute.END_COLUMNS",
        note="rows with old_replicas are those of a journal",
    ),
    "reassign rollback": _rows(
        "reassign_execute.END_COLUMNS",
        "reassign_plan.CHANGE_COLUMNS",
        note="rows with batch are those of --dry-run",
    ),
    "reassign status": _rows("reassign_status.STATUS_COLUMNS"),
    "reassign verify": _rows("reassign_status.STATUS_COLUMNS"),
    "reassign rehearse": _rows("reassign_rehearse.REHEARSAL_COLUMNS"),
    "reassign explain": _rows("reassign_explain.STEP_COLUMNS"),
    "check": _rows("check_work.FINDING_COLUMNS"),
    "explain partition": _object("explain_work.PARTITION_COLUMNS"),
    "cluster start": _object("cluster_work.STATUS_COLUMNS"),
    "cluster status": _object("cluster_status.HEALTH_COLUMNS"),
    "cluster list": _rows("cluster_work.LIST_COLUMNS"),
    "cluster repair": _rows("cluster_repair.REPAIR_COLUMNS"),
    "znode ls": _rows(_STAT),
    "znode get": _object(f"{_STAT}+znode_work.DATA_COLUMNS"),
    "znode stat": _object(_STAT),
    "znode tree": _rows(f"{_STAT}+znode_work.DEPTH_COLUMN"),
    "znode watch": _rows("znode_work.CHANGE_COLUMNS"),
    "znode create": _object(_STAT),
    "znode set": _object(_STAT),
    "znode delete": _object("znode_change.DELETE_COLUMNS"),
    "sim run": _object("sim_work.SUMMARY_COLUMNS"),
    "dump-log": _rows(
        "dump_log_columns.RECORDS",
        "dump_log_columns.BATCHES",
        "dump_log_columns.INDEXES",
        "dump_log_columns.TIME_INDEXES",
        "dump_log_columns.ABORTED_TRANSACTIONS",
        "dump_log_columns.SNAPSHOTS",
        note="records of a log, its batches with --headers-only, or entries of an .index, "
        ".timeindex, .txnindex or .snapshot",
    ),
    "logs dirs": _rows("logs_rows.DIRS_COLUMNS"),
    "logs verify": _rows("logs_rows.FINDING_COLUMNS"),
    "logs repair": _rows("logs_rows.ACTION_COLUMNS"),
    "logs diff": _rows("logs_rows.DIFF_COLUMNS"),
    "spark-export": _rows("spark_summary.SUMMARY_COLUMNS"),
    "spark-sql": _rows(note="the keys of rows are the columns of the query"),
    "context list": _rows("context_work.CONTEXT_COLUMNS"),
    "context show": JsonOutput(
        ("context_work.CONTEXT_COLUMNS", "context_work.CHOICE_COLUMNS"),
        is_object=True,
        note="an object with source is that of a command without NAME",
    ),
    "schema": _rows(".schemas.LIST_COLUMNS", note="a list of commands; that of one is a schema"),
}
LIST_COLUMNS: Final = (Column("command", "COMMAND"), Column("document", "DOCUMENT"))


class NoSuchOutput(EngineError):
    """A command was named that has no `-o json`."""

    exit_code = exits.USAGE
    hint = "`kctl schema` lists the commands that have one"

    def __init__(self, name: str) -> None:
        super().__init__(f"no command {name!r} with -o json")
        self.name = name


def schema_of(command: str) -> Schema:
    """Return the schema of what a command prints with `-o json`; raises NoSuchOutput."""
    output = OUTPUTS.get(command)
    if output is None:
        raise NoSuchOutput(command)
    rows = [_row(_columns(kind)) for kind in output.rows] or [{"type": "object"}]
    one = rows[0] if len(rows) == 1 else {"anyOf": rows}
    schema: Schema = {"$schema": DIALECT, "title": f"kctl {command} -o json"}
    if output.note:
        schema["description"] = output.note
    return schema | (one if output.is_object else {"type": "array", "items": one})


def schema_text(schema: Schema) -> str:
    """Return a schema as JSON, for a file or a terminal."""
    import json

    return json.dumps(schema, ensure_ascii=False, indent=1) + "\n"


def _columns(kind: str) -> list[Column]:
    """Return the columns of one kind of rows."""
    columns: list[Column] = []
    for name in kind.split("+"):
        module, _, attribute = name.rpartition(".")
        home = f"kctl{module}" if module.startswith(".") else f"kctl.commands.{module}"
        found = getattr(import_module(home), attribute)
        columns += [found] if isinstance(found, Column) else found
    return columns


def _row(columns: Sequence[Column]) -> Schema:
    return {
        "type": "object",
        "properties": {column.key: _value(_kind(column), column) for column in columns},
        "required": [column.key for column in columns if not column.is_optional],
        "additionalProperties": False,
    }


def _kind(column: Column) -> str:
    return column.kind or (
        "integer" if column.right or column.is_size or column.is_time else "string"
    )


def _value(kind: str, column: Column) -> Schema:
    """Return the schema of a kind's values; `Column` says how kinds are written."""
    if kind.endswith("?"):
        schema = _value(kind[:-1], column)
        return schema | {"type": [schema["type"], "null"]}
    if kind.endswith("[]"):
        return {"type": "array", "items": _value(kind[:-2], column)}
    if kind.endswith("{}"):
        return {"type": "object", "additionalProperties": _value(kind[:-2], column)}
    if kind == "object":
        return _row(column.fields)
    return {} if kind == "any" else {"type": kind}
