"""The table of commands that change a cluster, consulted before a command starts.

| kind | meaning | checked by |
|---|---|---|
| `READS` | sends only reading requests to a cluster | its client, which refuses others |
| `CHANGES` | changes a cluster, or may | the guards of contexts (`guard`), before it starts |
| `LOCAL` | works on no context's cluster, but on local files and processes, or kctl itself | – |

A command does not change a cluster with any option in `unless`; with `only_with` it changes one
only with an option in it. A test compares the table with the existing commands.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

READS: Final = "reads"
CHANGES: Final = "changes"
LOCAL: Final = "local"


class Effect(NamedTuple):
    """The effect of a command on a cluster; options have the names of its parameters."""

    kind: str
    unless: tuple[str, ...] = ()
    only_with: tuple[str, ...] = ()

    def changes_something(self, parameters: Mapping[str, object]) -> bool:
        """Return True if the command changes a cluster with these option values."""
        if self.kind != CHANGES or any(parameters.get(name) for name in self.unless):
            return False
        return not self.only_with or any(parameters.get(name) for name in self.only_with)


_READ: Final = Effect(READS)
_LOCAL: Final = Effect(LOCAL)
_CHANGE: Final = Effect(CHANGES)
_CHANGE_OR_TRY: Final = Effect(CHANGES, unless=("dry_run",))
#: Without any of these options a demo starts its own cluster.
_CHANGE_OF_NAMED: Final = Effect(CHANGES, only_with=("bootstrap", "context", "command_config"))
#: With --dir the command works in a log directory that no broker uses.
_CHANGE_OR_OFFLINE: Final = Effect(CHANGES, unless=("directory",))
#: Without --execute a reset changes nothing; --dry-run does not apply to other actions.
_CHANGE_OF_GROUPS: Final = Effect(CHANGES, only_with=("execute", "delete", "delete-offsets"))

EFFECTS: Final[Mapping[str, Effect]] = {
    "topics list": _READ,
    "topics describe": _READ,
    "topics create": _CHANGE_OR_TRY,
    "topics alter": _CHANGE_OR_TRY,
    "topics delete": _CHANGE_OR_TRY,
    "topics configs": _READ,
    "topics set-rf": _CHANGE_OR_TRY,
    "configs describe": _READ,
    "configs set": _CHANGE_OR_TRY,
    "configs unset": _CHANGE_OR_TRY,
    "apply": Effect(CHANGES, unless=("dry_run", "schema")),
    "diff": _READ,
    "export": _READ,
    "acls list": _READ,
    "acls create": _CHANGE_OR_TRY,
    "acls delete": _CHANGE_OR_TRY,
    "acls check": _READ,
    "acls apply": _CHANGE_OR_TRY,
    "audit": _LOCAL,
    "users list": _READ,
    "users create": _CHANGE_OR_TRY,
    "users rotate": _CHANGE_OR_TRY,
    "users delete": _CHANGE_OR_TRY,
    "tokens list": _READ,
    "tokens create": _CHANGE_OR_TRY,
    "tokens renew": _CHANGE_OR_TRY,
    "tokens expire": _CHANGE_OR_TRY,
    "quotas list": _READ,
    "quotas set": _CHANGE_OR_TRY,
    "quotas unset": _CHANGE_OR_TRY,
    "certs new": _LOCAL,
    "produce": _CHANGE,
    "consume": Effect(CHANGES, only_with=("group",)),
    "replay": _CHANGE,
    # Changes its destination, and only reads its source (`guard.reading_checks`).
    "copy": _CHANGE_OR_TRY,
    "perf produce": _CHANGE,
    # Creates a topic if none is given.
    "perf consume": Effect(CHANGES, unless=("topic",)),
    "perf latency": _CHANGE,
    "offsets get": _READ,
    "offsets committed": _LOCAL,
    "groups list": _READ,
    "groups members": _READ,
    "groups lag": _READ,
    "groups describe": _READ,
    "groups offsets": _READ,
    "groups reset-offsets": Effect(CHANGES, only_with=("execute",)),
    "groups delete": _CHANGE_OR_TRY,
    "groups delete-offsets": _CHANGE_OR_TRY,
    "groups remove-members": _CHANGE_OR_TRY,
    "groups simulate": _LOCAL,
    "transactions list": _READ,
    "transactions describe": _READ,
    "transactions producers": _READ,
    "transactions find-hanging": _READ,
    "transactions abort": _CHANGE_OR_TRY,
    "transactions forge-hanging": _LOCAL,
    "records delete": _CHANGE_OR_TRY,
    "retention plan": _READ,
    "retention run": _CHANGE_OR_OFFLINE,
    "compact plan": _READ,
    "compact run": _CHANGE_OR_OFFLINE,
    "compact status": _READ,
    "brokers list": _READ,
    "brokers describe": _READ,
    "brokers shutdown": _LOCAL,
    "brokers drain": _CHANGE_OR_TRY,
    "brokers replace": _CHANGE_OR_TRY,
    "brokers log-dirs": _READ,
    "brokers api-versions": _READ,
    "brokers metrics": _READ,
    "features list": _READ,
    "features upgrade": _CHANGE_OR_TRY,
    "features downgrade": _CHANGE_OR_TRY,
    "quorum describe": _READ,
    "quorum voters": _READ,
    "leaders list": _READ,
    "leaders elect": _CHANGE_OR_TRY,
    "leaders balance": _CHANGE_OR_TRY,
    "leaders demote": _CHANGE_OR_TRY,
    "reassign plan": _READ,
    "reassign execute": _CHANGE_OR_TRY,
    "reassign resume": _CHANGE,
    "reassign throttle": _CHANGE,
    "reassign pause": _CHANGE,
    "reassign throttles": Effect(CHANGES, unless=("dry_run",), only_with=("clear",)),
    "reassign cancel": _CHANGE_OR_TRY,
    "reassign rollback": _CHANGE_OR_TRY,
    "reassign status": _READ,
    "reassign verify": _READ,
    "reassign rehearse": _READ,
    "reassign explain": _READ,
    "check": _READ,
    "report cluster": _READ,
    "top": _READ,
    "events": _READ,
    "exporter": _READ,
    "explain partition": _READ,
    "cluster start": _LOCAL,
    "cluster stop": _LOCAL,
    "cluster status": _READ,
    "cluster list": _LOCAL,
    "cluster repair": _LOCAL,
    "cluster restart": _LOCAL,
    "cluster kill": _LOCAL,
    "cluster pause": _LOCAL,
    "cluster resume": _LOCAL,
    "cluster add": _LOCAL,
    "cluster remove": _LOCAL,
    "cluster logs": _LOCAL,
    "cluster destroy": _LOCAL,
    "cluster partition": _LOCAL,
    "cluster slow": _LOCAL,
    "cluster heal": _LOCAL,
    "broker run": _LOCAL,
    "znode ls": _READ,
    "znode get": _READ,
    "znode stat": _READ,
    "znode tree": _READ,
    "znode watch": _READ,
    "znode create": _CHANGE,
    "znode set": _CHANGE,
    "znode delete": _CHANGE,
    "sim run": _LOCAL,
    "demo produce-consume": _CHANGE_OF_NAMED,
    "demo exactly-once": _CHANGE_OF_NAMED,
    "dump-log": _LOCAL,
    "logs dirs": _LOCAL,
    "logs verify": _LOCAL,
    "logs repair": _LOCAL,
    "logs diff": _LOCAL,
    "spark-export": _LOCAL,
    "spark-sql": _LOCAL,
    "spark-shell": _LOCAL,
    "spark-report": _LOCAL,
    "context list": _LOCAL,
    "context set": _LOCAL,
    "context use": _LOCAL,
    "context show": _LOCAL,
    "context delete": _LOCAL,
    "schema": _LOCAL,
    "compat kafka-reassign-partitions": Effect(CHANGES, unless=("generate", "list")),
    "compat kafka-leader-election": _CHANGE,
    "compat kafka-consumer-groups": _CHANGE_OF_GROUPS,
    "compat kafka-groups": _READ,
    "compat kafka-share-groups": _CHANGE_OF_GROUPS,
    "compat kafka-streams-groups": _CHANGE_OF_GROUPS,
    "compat kafka-configs": Effect(CHANGES, unless=("describe",)),
    "compat kafka-get-offsets": _READ,
    "compat kafka-delete-records": _CHANGE,
    "compat kafka-log-dirs": _READ,
    "compat kafka-broker-api-versions": _READ,
    "compat kafka-cluster": Effect(CHANGES, unless=("cluster-id", "list-endpoints")),
    "compat kafka-client-metrics": Effect(CHANGES, unless=("list", "describe")),
    "compat kafka-topics": Effect(CHANGES, unless=("list", "describe")),
    "compat kafka-console-producer": _CHANGE,
    "compat kafka-console-consumer": Effect(CHANGES, unless=("partition",)),
    "compat kafka-dump-log": _LOCAL,
    "compat kafka-acls": Effect(CHANGES, unless=("list",)),
    "compat kafka-transactions": Effect(
        CHANGES, unless=("list", "describe", "describe-producers", "find-hanging")
    ),
    "compat kafka-features": Effect(CHANGES, unless=("describe", "dry-run")),
    "compat kafka-metadata-quorum": Effect(CHANGES, unless=("describe", "dry-run")),
    "compat kafka-delegation-tokens": Effect(CHANGES, unless=("describe",)),
    "compat kafka-producer-perf-test": _CHANGE,
    "compat kafka-consumer-perf-test": _CHANGE,
    "compat kafka-verifiable-producer": _CHANGE,
    "compat kafka-verifiable-consumer": _CHANGE,
    "compat kafka-e2e-latency": _CHANGE,
    "compat kafka-replica-verification": _READ,
    "compat kafka-storage": _LOCAL,
    "compat zookeeper-shell": Effect(
        CHANGES,
        unless=(
            *("ls", "get", "stat", "getAcl", "getAllChildrenNumber", "getEphemerals", "sync"),
            *("version", "history", "printwatches", "quit"),
        ),
    ),
    "compat install": _LOCAL,
    "completions": _LOCAL,
}


def effect_of(command_path: str) -> Effect:
    """Return what a command does to clusters, by its name such as `topics create`.

    A command that is not in the table counts as a change.
    """
    return EFFECTS.get(command_path, _CHANGE)
