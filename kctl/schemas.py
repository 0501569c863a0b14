"""JSON Schema (draft 2020-12) of the `-o json` output of each command.

`OUTPUTS` names the columns of every command that has `-o`; the columns name the types of values.
A line of `-o ndjson` is a row of that document, and `-o yaml` is the same document.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Final, NamedTuple

from engine.errors import EngineError
from kctl import exits
from kctl.render.columns import Column

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
Schema = dict[str, object]


class JsonOutput(NamedTuple):
    """The output of a command, as the names of its columns.

    `rows` are the possible kinds of rows; if empty, rows may have any keys. A kind is `module.NAME`
    in kctl, with `+` between parts of a row. `note` tells when a row is of which kind.
    """

    rows: tuple[str, ...]
    is_object: bool = False
    note: str = ""


def _rows(*kinds: str, note: str = "") -> JsonOutput:
    """Return the output of a command that prints rows, of one or of several kinds.

    A kind names columns, as in `JsonOutput`; without any the rows may have any keys.
    """
    return JsonOutput(kinds, note=note)


def _object(columns: str) -> JsonOutput:
    """Return the output of a command that prints a single object with these columns."""
    return JsonOutput((columns,), is_object=True)


_CONFIGS: Final = "configs.settings.CONFIG_COLUMNS+configs.settings.DOCUMENTATION_COLUMN"
_STAT: Final = "znode.nodes.PLAIN_STAT_COLUMNS"

_JOB: Final = _rows(
    "reassign.execute.END_COLUMNS",
    "reassign.plan.CHANGE_COLUMNS",
    note="rows with batch are those of --dry-run",
)

OUTPUTS: Final[dict[str, JsonOutput]] = {
    "topics list": _rows(
        "topics.listing.LIST_COLUMNS+topics.listing.SIZE_COLUMN+topics.rates.TOPIC_RATE_COLUMNS"
    ),
    "topics describe": _rows("topics.listing.TOPIC_COLUMNS"),
    "topics create": _rows("topics.changes.CREATE_COLUMNS"),
    "topics alter": _rows("topics.changes.ALTER_COLUMNS"),
    "topics delete": _rows("topics.changes.DELETE_COLUMNS"),
    "topics configs": _rows(_CONFIGS),
    "topics set-rf": _JOB,
    "configs describe": _rows(_CONFIGS),
    "configs set": _rows("configs.settings.CHANGE_COLUMNS"),
    "configs unset": _rows("configs.settings.CHANGE_COLUMNS"),
    "produce": _rows("produce.report.BATCH_COLUMNS"),
    "consume": _rows(
        ".record_rows.RECORD_COLUMNS+.record_rows.DECODED_COLUMNS",
        note="decoded_key and decoded_value are there with --schemas, --schema-registry or"
        " --key-schema",
    ),
    "copy": _rows(
        "copy.copying.TOPIC_COLUMNS",
        note="copied_records, copied_bytes and left_out_records are of this process alone",
    ),
    "perf produce": _object("perf.report.RESULT_COLUMNS"),
    "perf consume": _object("perf.report.RESULT_COLUMNS"),
    "perf latency": _object("perf.report.RESULT_COLUMNS"),
    "offsets get": _rows(
        "offsets.ends.RANGE_COLUMNS",
        "offsets.ends.POINT_COLUMNS",
        note="rows with offset are those of --at",
    ),
    "offsets committed": _rows("offsets.committed.COLUMNS"),
    "groups list": _rows("groups.listing.LIST_COLUMNS+groups.listing.LAG_SUM_COLUMNS"),
    "groups members": _rows("groups.listing.MEMBER_COLUMNS"),
    "groups lag": _rows(
        "groups.lag.LAG_COLUMNS+groups.lag.LAG_TIME_COLUMN+groups.lag.VERDICT_COLUMNS",
        note="lag_ms is there with --time, verdict and reason with --watch",
    ),
    "groups describe": _rows("groups.listing.DESCRIBE_COLUMNS"),
    "groups offsets": _rows("groups.listing.OFFSET_COLUMNS"),
    "groups reset-offsets": _rows("groups.resetting.RESET_COLUMNS"),
    "groups delete": _rows("groups.changes.DELETE_COLUMNS"),
    "groups delete-offsets": _rows("groups.changes.DELETE_OFFSETS_COLUMNS"),
    "groups remove-members": _rows("groups.changes.REMOVE_COLUMNS"),
    "groups simulate": _rows("groups.simulate.COLUMNS"),
    "transactions list": _rows("transactions.listing.LIST_COLUMNS"),
    "transactions describe": _rows("transactions.listing.DESCRIBE_COLUMNS"),
    "transactions producers": _rows("transactions.listing.PRODUCER_COLUMNS"),
    "transactions find-hanging": _rows("transactions.hanging.HANGING_COLUMNS"),
    "transactions abort": _rows("transactions.hanging.ABORT_COLUMNS"),
    "transactions forge-hanging": _rows("transactions.forging.FORGED_COLUMNS"),
    "records delete": _rows("offsets.ends.DELETE_COLUMNS"),
    "retention plan": _rows(
        "retention.plan.PLAN_COLUMNS+retention.plan.CHART_COLUMN",
        "retention.plan.TOPIC_COLUMNS+retention.plan.CHART_COLUMN",
        "retention.plan.UPCOMING_COLUMNS",
        "retention.plan.ADVICE_COLUMNS",
        note="rows with partitions are those of --by-topic, with at_ms of --upcoming, with "
        "budget_bytes of --advise",
    ),
    "retention run": _rows("retention.run.RUN_COLUMNS"),
    "compact plan": _rows(
        "compact.rows.PLAN_COLUMNS+compact.rows.EXACT_COLUMNS+compact.rows.CHART_COLUMN",
        note="freed_bytes, left_bytes and freed_records are there with --exact",
    ),
    "compact run": _rows(
        "compact.rows.RUN_COLUMNS",
        "compact.rows.CLUSTER_RUN_COLUMNS",
        note="rows with broker are those of a cluster",
    ),
    "compact status": _rows("compact.rows.STATUS_COLUMNS"),
    "apply": _rows(
        "apply.applying.RESULT_COLUMNS",
        note="result is pending with --dry-run; failed, skipped and interrupted are not done",
    ),
    "diff": _rows(".declared.pending_steps.STEP_COLUMNS"),
    "acls list": _rows("acls.rule_texts.RULE_COLUMNS"),
    "acls create": _rows("acls.listing.CHANGE_COLUMNS"),
    "acls delete": _rows("acls.listing.CHANGE_COLUMNS"),
    "acls check": _rows("acls.checking.CHECK_COLUMNS"),
    "acls apply": _rows("acls.listing.CHANGE_COLUMNS"),
    "audit": _rows(
        "audit.decisions.COLUMNS",
        "audit.decisions.SUMMARY_COLUMNS",
        note="rows with count are those of --summary",
    ),
    "brokers list": _rows("brokers.listing.LIST_COLUMNS"),
    "brokers describe": _rows("brokers.listing.DESCRIBE_COLUMNS"),
    "brokers drain": _JOB,
    "brokers replace": _JOB,
    "brokers log-dirs": _rows(
        "brokers.listing.LOG_DIR_COLUMNS",
        "brokers.listing.REPLICA_COLUMNS",
        note="rows with topic are those of --replicas",
    ),
    "brokers api-versions": _rows("brokers.listing.API_COLUMNS"),
    "brokers metrics": _rows("brokers.metrics.METRIC_COLUMNS"),
    "features list": _rows("features.levels.LIST_COLUMNS"),
    "features upgrade": _rows("features.levels.CHANGE_COLUMNS"),
    "features downgrade": _rows("features.levels.CHANGE_COLUMNS"),
    "quorum describe": _object("quorum.replicas.QUORUM_COLUMNS"),
    "quorum voters": _rows("quorum.replicas.REPLICA_COLUMNS"),
    "leaders list": _rows(
        "leaders.elections.LEADER_COLUMNS",
        "leaders.elections.BROKER_COLUMNS",
        note="rows without topic are those of --by-broker",
    ),
    "leaders elect": _rows("leaders.elections.ELECTION_COLUMNS"),
    "leaders balance": _rows(
        "leaders.elections.ELECTION_COLUMNS",
        "reassign.execute.END_COLUMNS",
        "reassign.plan.CHANGE_COLUMNS",
        note="rows with old_replicas are those of --reorder, with batch of its --dry-run",
    ),
    "leaders demote": _JOB,
    "reassign plan": _rows(
        "reassign.plan.BROKER_COLUMNS+reassign.plan.RATE_COLUMNS",
        "reassign.plan.CHANGE_COLUMNS",
        "reassign.plan.FRONT_COLUMNS+reassign.plan.FRONT_RATE_COLUMNS",
        note="rows with topic are those of --changes, those with unmet of --front",
    ),
    "reassign execute": _rows(
        "reassign.execute.END_COLUMNS",
        "reassign.plan.CHANGE_COLUMNS",
        note="rows with batch are those of --dry-run",
    ),
    "reassign resume": _rows("reassign.execute.END_COLUMNS"),
    "reassign throttles": _rows("reassign.throttles.THROTTLE_COLUMNS"),
    "reassign cancel": _rows(
        "reassign.cancel.CANCEL_COLUMNS",
        "reassign.execute.END_COLUMNS",
        note="rows with old_replicas are those of a journal",
    ),
    "reassign rollback": _rows(
        "reassign.execute.END_COLUMNS",
        "reassign.plan.CHANGE_COLUMNS",
        note="rows with batch are those of --dry-run",
    ),
    "reassign status": _rows("reassign.status.STATUS_COLUMNS"),
    "reassign verify": _rows("reassign.status.STATUS_COLUMNS"),
    "reassign rehearse": _rows("reassign.rehearse.REHEARSAL_COLUMNS"),
    "reassign explain": _rows("reassign.explain.STEP_COLUMNS"),
    "check": _rows("check.verdict.FINDING_COLUMNS"),
    "explain partition": _object("explain.partition.PARTITION_COLUMNS"),
    "report cluster": JsonOutput(
        ("report.columns.REPORT_COLUMNS",), is_object=True, note="rows of ndjson are the findings"
    ),
    "top": JsonOutput(
        ("top.watching.FRAME_COLUMNS",),
        is_object=True,
        note="rows of ndjson are those of --view, else of topics",
    ),
    "events": _rows("events.watching.EVENT_COLUMNS"),
    "cluster start": _object("cluster.lifecycle.STATUS_COLUMNS"),
    "cluster status": _object("cluster.status.HEALTH_COLUMNS"),
    "cluster list": _rows("cluster.lifecycle.LIST_COLUMNS"),
    "cluster repair": _rows("cluster.repair.REPAIR_COLUMNS"),
    "users list": _rows("users.credentials.LIST_COLUMNS"),
    "users create": _rows(
        "users.credentials.CHANGE_COLUMNS+users.credentials.PASSWORD_COLUMN",
        note="password is there with --generate and without --out",
    ),
    "users rotate": _rows(
        "users.credentials.CHANGE_COLUMNS+users.credentials.PASSWORD_COLUMN",
        note="password is there with --generate and without --out",
    ),
    "users delete": _rows("users.credentials.DELETE_COLUMNS"),
    "tokens list": _rows(
        "tokens.changes.LIST_COLUMNS+tokens.changes.HMAC_COLUMN",
        note="hmac is there by --show-hmac",
    ),
    "tokens create": _rows(
        "tokens.changes.CREATE_COLUMNS+tokens.changes.HMAC_COLUMN",
        note="hmac is there without --out",
    ),
    "tokens renew": _rows("tokens.changes.CHANGE_COLUMNS"),
    "tokens expire": _rows("tokens.changes.CHANGE_COLUMNS"),
    "quotas list": _rows("quotas.limits.LIST_COLUMNS"),
    "quotas set": _rows("quotas.limits.CHANGE_COLUMNS"),
    "quotas unset": _rows("quotas.limits.CHANGE_COLUMNS"),
    "certs new": _rows("certs.issuing.CERTIFICATE_COLUMNS"),
    "znode ls": _rows(_STAT),
    "znode get": _object(f"{_STAT}+znode.nodes.DATA_COLUMNS"),
    "znode stat": _object(_STAT),
    "znode tree": _rows(f"{_STAT}+znode.nodes.DEPTH_COLUMN"),
    "znode watch": _rows("znode.nodes.CHANGE_COLUMNS"),
    "znode create": _object(_STAT),
    "znode set": _object(_STAT),
    "znode delete": _object("znode.changes.DELETE_COLUMNS"),
    "sim run": _object("sim.seeds.SUMMARY_COLUMNS"),
    "demo produce-consume": _rows("demo.produce_consume.RECORD_COLUMNS"),
    "demo exactly-once": _rows("demo.exactly_once.INSTANCE_COLUMNS"),
    "dump-log": _rows(
        "dump_log.columns.RECORDS",
        "dump_log.columns.BATCHES",
        "dump_log.columns.INDEXES",
        "dump_log.columns.TIME_INDEXES",
        "dump_log.columns.ABORTED_TRANSACTIONS",
        "dump_log.columns.SNAPSHOTS",
        note="records of a log, its batches with --headers-only, or entries of an .index, "
        ".timeindex, .txnindex or .snapshot",
    ),
    "logs dirs": _rows("logs.rows.DIRS_COLUMNS"),
    "logs verify": _rows("logs.rows.FINDING_COLUMNS"),
    "logs repair": _rows("logs.rows.ACTION_COLUMNS"),
    "logs diff": _rows("logs.rows.DIFF_COLUMNS"),
    "spark-export": _rows("spark_export.summary.SUMMARY_COLUMNS"),
    "spark-sql": _rows(note="the keys of rows are the columns of the query"),
    "spark-shell": _rows(
        note="the keys of rows are the columns of a query; a document a statement"
    ),
    "spark-report": _rows(
        "spark_report.app.LIST_COLUMNS",
        note="rows of the list; those of a report have its columns as keys, and `all` is an object"
        " of lists of rows by report",
    ),
    "context list": _rows("context.contexts.CONTEXT_COLUMNS"),
    "context show": JsonOutput(
        ("context.contexts.CONTEXT_COLUMNS", "context.contexts.CHOICE_COLUMNS"),
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
    """Return the schema of a command's output with `-o json`; raises NoSuchOutput."""
    output = OUTPUTS.get(command)
    if output is None:
        raise NoSuchOutput(command)
    rows = [_row_schema(_import_columns(kind)) for kind in output.rows] or [{"type": "object"}]
    one = rows[0] if len(rows) == 1 else {"anyOf": rows}
    schema: Schema = {"$schema": DIALECT, "title": f"kctl {command} -o json"}
    if output.note:
        schema["description"] = output.note
    return schema | (one if output.is_object else {"type": "array", "items": one})


def schema_text(schema: Schema) -> str:
    """Return a schema as indented JSON with a final newline."""
    import json

    return json.dumps(schema, ensure_ascii=False, indent=1) + "\n"


def _import_columns(kind: str) -> list[Column]:
    """Return the columns of one kind of rows, imported from the modules that `kind` names.

    The notation is that of `JsonOutput`.
    """
    columns: list[Column] = []
    for name in kind.split("+"):
        module, _, attribute = name.rpartition(".")
        home = f"kctl{module}" if module.startswith(".") else f"kctl.commands.{module}"
        found = getattr(import_module(home), attribute)
        columns += [found] if isinstance(found, Column) else found
    return columns


def _row_schema(columns: Sequence[Column]) -> Schema:
    """Return the schema of a row with these columns: all but the optional ones are required."""
    return {
        "type": "object",
        "properties": {column.key: _value_schema(_kind(column), column) for column in columns},
        "required": [column.key for column in columns if not column.is_optional],
        "additionalProperties": False,
    }


def _kind(column: Column) -> str:
    """Return the JSON type of a column, in the notation of `Column.kind`.

    Without such a kind, right-aligned columns, sizes and times are integers, others strings.
    """
    return column.kind or (
        "integer" if column.right or column.is_size or column.is_time else "string"
    )


def _value_schema(kind: str, column: Column) -> Schema:
    """Return the schema of values of a kind; `Column` documents the notation of kinds."""
    if kind.endswith("?"):
        schema = _value_schema(kind[:-1], column)
        return schema | {"type": [schema["type"], "null"]}
    if kind.endswith("[]"):
        return {"type": "array", "items": _value_schema(kind[:-2], column)}
    if kind.endswith("{}"):
        return {"type": "object", "additionalProperties": _value_schema(kind[:-2], column)}
    if kind == "object":
        return _row_schema(column.fields)
    return {} if kind == "any" else {"type": kind}
