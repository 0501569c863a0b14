"""The nouns of kctl in one table, so that printing help needs no imports.

`NOUNS` is the only list of them. A noun's module defines `app`, a Typer application.

Source: D18.
"""

from __future__ import annotations

from typing import NamedTuple


class Noun(NamedTuple):
    """A top-level command: its module below kctl.commands, its help line and its group."""

    module: str
    summary: str
    group: str


_OFFLINE = "Log directories, without a broker"
_DATA = "Topics and data"
_CLUSTER = "Cluster"
_SHELL = "kctl itself"

NOUNS: dict[str, Noun] = {
    "topics": Noun("topics", "List, describe, create, alter and delete topics", _DATA),
    "configs": Noun("configs", "Show and change settings of topics and brokers", _DATA),
    "produce": Noun("produce", "Produce records from stdin", _DATA),
    "consume": Noun("consume", "Print records of topics and partitions", _DATA),
    "replay": Noun("replay", "Send the records of copied logs to a topic, at their pace", _DATA),
    "copy": Noun("copy", "Copy topics from one cluster to another, and go on with it", _DATA),
    "perf": Noun("perf", "Measure producing, consuming, latency from end to end", _DATA),
    "offsets": Noun("offsets", "Show where partitions start and end, or where a time is", _DATA),
    "groups": Noun("groups", "List groups, their members, offsets and lag", _DATA),
    "transactions": Noun(
        "transactions", "List open transactions, find and abort hanging ones", _DATA
    ),
    "records": Noun("records", "Delete the oldest records of partitions", _DATA),
    "retention": Noun("retention", "Show what retention deletes and when, or would", _DATA),
    "compact": Noun("compact", "Show how dirty logs of a directory are, and clean them", _OFFLINE),
    "apply": Noun("apply", "Change a cluster to the state that files declare", _CLUSTER),
    "diff": Noun("diff", "Show what apply would change", _CLUSTER),
    "export": Noun("export", "Write the state of a cluster as files for apply", _CLUSTER),
    "acls": Noun("acls", "Show, check and change who may do what", _CLUSTER),
    "audit": Noun("audit", "Show what authorizers denied and allowed, by logs", _CLUSTER),
    "brokers": Noun("brokers", "List brokers, their log directories, settings and APIs", _CLUSTER),
    "features": Noun("features", "List levels of features, upgrade and downgrade them", _CLUSTER),
    "quorum": Noun("quorum", "Show the controllers of a cluster without ZooKeeper", _CLUSTER),
    "leaders": Noun("leaders", "List leaders, elect and balance them", _CLUSTER),
    "reassign": Noun("reassign", "Plan moves of replicas, execute and watch them", _CLUSTER),
    "check": Noun("check", "Check for what is wrong, each finding with its cause", _CLUSTER),
    "explain": Noun("explain", "Show all of a partition, and what would happen to it", _CLUSTER),
    "report": Noun("report", "Report on a cluster as a whole, as one page too", _CLUSTER),
    "top": Noun("top", "Watch a cluster on one screen", _CLUSTER),
    "events": Noun("events", "Show changes of a cluster as they come", _CLUSTER),
    "exporter": Noun("exporter", "Serve metrics of a cluster for Prometheus", _CLUSTER),
    "cluster": Noun("cluster", "Start, stop and repair an embedded cluster", _CLUSTER),
    "broker": Noun("broker", "Run one broker from a server.properties", _CLUSTER),
    "users": Noun("users", "List users of SCRAM, create them, rotate their passwords", _CLUSTER),
    "tokens": Noun("tokens", "List, create, renew and expire delegation tokens", _CLUSTER),
    "quotas": Noun("quotas", "List, set and unset quotas of clients", _CLUSTER),
    "certs": Noun("certs", "Make keys and certificates for rehearsals", _CLUSTER),
    "znode": Noun(
        "znode", "Show, watch and change nodes of a metadata store or ZooKeeper", _CLUSTER
    ),
    "sim": Noun("sim", "Simulate a cluster with faults, check that nothing is lost", _CLUSTER),
    "demo": Noun(
        "demo", "Produce and consume, copy exactly once, by a cluster of its own", _CLUSTER
    ),
    "dump-log": Noun("dump_log", "Print what is in log segments, indexes and snapshots", _OFFLINE),
    "logs": Noun("logs", "Verify, repair and list raw log directories", _OFFLINE),
    "spark-export": Noun("spark_export", "Export log directories to Parquet on Spark", _OFFLINE),
    "spark-sql": Noun("spark_sql", "Run SQL over log directories", _OFFLINE),
    "spark-shell": Noun("spark_shell", "Run SQL over log directories interactively", _OFFLINE),
    "spark-report": Noun(
        "spark_report", "Report on sizes, keys, gaps of log directories", _OFFLINE
    ),
    "context": Noun("context", "Keep clusters by name, choose the one to talk to", _SHELL),
    "schema": Noun("schema", "Print the JSON schema of what a command writes", _SHELL),
    "compat": Noun("compat", "Stand in for tools of Apache Kafka, by their names", _SHELL),
    "completions": Noun("completions", "Print the completion script of a shell", _SHELL),
}

#: Nouns that parse plain calls themselves, and import Typer only for other calls.
READERS = frozenset(("cluster", "compat", "dump-log"))


def help_text() -> str:
    """Return the top-level help, built from the table of nouns without importing their commands."""
    width = max(len(name) for name in NOUNS) + 2
    lines = ["Usage: kctl COMMAND [ARGS]...", "", "The toolkit for operators of Apache Kafka.", ""]
    for group in dict.fromkeys(noun.group for noun in NOUNS.values()):
        lines.append(f"{group}:")
        for name, noun in NOUNS.items():
            if noun.group == group:
                lines.append(f"  {name:<{width}}{noun.summary}")
        lines.append("")
    lines.append("`kctl COMMAND --help` shows more. Options: --help, --version.")
    return "\n".join(lines) + "\n"


def closest_noun(argument: str) -> str | None:
    """Return the command of NOUNS most similar to a mistyped one, None if there is none."""
    from difflib import get_close_matches

    alike = get_close_matches(argument, NOUNS, n=1)
    return alike[0] if alike else None
