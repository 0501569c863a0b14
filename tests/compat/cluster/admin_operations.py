"""Operations on replicas, leaders, brokers and settings, drawn and applied to both clusters."""

from __future__ import annotations

import json
import random
import time
from typing import Any, Final

from tests.compat.cluster.processes import BROKER_IDS, LOG_DIRS
from tests.compat.cluster.stage import Stage
from tests.compat.cluster.topic_operations import (
    TIMEOUT_MS,
    a_partition,
    own_topics,
    produce,
    some_replicas,
)

_BROKER: Final = 4
_BROKER_CONFIGS: Final = (
    ("log.flush.interval.messages", "1000", "2000"),
    ("message.max.bytes", "200000", "300000"),
    ("num.replica.fetchers", "1", "2"),
    ("leader.replication.throttled.rate", "10000000"),
    ("follower.replication.throttled.rate", "10000000"),
    ("log.cleaner.threads", "1", "2"),
    ("max.connections.per.ip", "1000"),
)
_QUOTAS: Final = (
    ("producer_byte_rate", 1e9, 1024.5e6),
    ("consumer_byte_rate", 2e9),
    ("request_percentage", 500.0, 12345.5),
    ("controller_mutation_rate", 1e6),
)


def reassign(stage: Stage, rng: random.Random) -> str | None:
    """Move replicas: other brokers, more, fewer, another order; or cancel."""
    picked = [one for one in (a_partition(stage, rng) for _ in range(rng.randint(1, 3))) if one]
    if not picked:
        return None
    moves = {
        one: None if rng.random() < 0.15 else some_replicas(rng) for one in dict.fromkeys(picked)
    }
    topics: dict[str, list[dict[str, Any]]] = {}
    for (name, index), replicas in moves.items():
        topics.setdefault(name, []).append({"partition_index": index, "replicas": replicas})
    body = {
        "timeout_ms": TIMEOUT_MS,
        "topics": [{"name": name, "partitions": parts} for name, parts in topics.items()],
    }
    stage.ask(None, "AlterPartitionReassignments", 0, body)
    return f"reassign {[(f'{name}-{index}', to) for (name, index), to in moves.items()]}"


def reassign_by_znode(stage: Stage, rng: random.Random) -> str | None:
    """Move replicas by the node of old tools."""
    picked = a_partition(stage, rng)
    if picked is None or "/admin/reassign_partitions" in stage.tree:
        return None
    name, index = picked
    replicas = some_replicas(rng)
    one = {"topic": name, "partition": index, "replicas": replicas}
    value = json.dumps({"version": 1, "partitions": [one]}, separators=(",", ":"))
    stage.write("/admin/reassign_partitions", value)
    return f"reassign by znode {name}-{index} {replicas}"


def elect(stage: Stage, rng: random.Random) -> str:
    """Elect preferred leaders, or any where there is none; of all partitions or of some."""
    kind = rng.choice((0, 0, 1))
    named: list[dict[str, Any]] | None = None
    picked = a_partition(stage, rng)
    if picked and rng.random() < 0.6:
        named = [{"topic": picked[0], "partitions": [picked[1]]}]
    body = {"election_type": kind, "topic_partitions": named, "timeout_ms": 5000}
    stage.ask(None, "ElectLeaders", 2, body)
    return f"elect {('preferred', 'unclean')[kind]} {named}"


def elect_by_znode(stage: Stage, rng: random.Random) -> str | None:
    """Elect preferred leaders by the node of old tools."""
    picked = a_partition(stage, rng)
    if picked is None:
        return None
    one = {"topic": picked[0], "partition": picked[1]}
    value = json.dumps({"version": 1, "partitions": [one]}, separators=(",", ":"))
    stage.write("/admin/preferred_replica_election", value)
    return f"elect by znode {picked}"


def stop_broker(stage: Stage, rng: random.Random) -> str | None:
    """Stop a broker in order, or kill it; one stays."""
    if len(stage.up) < 2 or (len(stage.up) == 2 and rng.random() < 0.5):
        return None
    broker_id = rng.choice(sorted(stage.up))
    is_clean = rng.random() < 0.5
    stage.align_controllers()
    stage.end(broker_id, is_clean=is_clean)
    stage.align_controllers()
    return f"{'stop' if is_clean else 'kill'} {broker_id}"


def start_broker(stage: Stage, rng: random.Random) -> str | None:
    """Start a broker that is down."""
    down = [id_ for id_ in BROKER_IDS if id_ not in stage.up]
    if not down:
        return None
    broker_id = rng.choice(down)
    stage.start(broker_id)
    return f"start {broker_id}"


def restart_all(stage: Stage, rng: random.Random) -> str:
    """Stop or kill one broker after the other, then start them in another order."""
    lost = []
    for broker_id in rng.sample(sorted(stage.up), len(stage.up)):
        is_clean = rng.random() < 0.5
        if len(stage.up) > 1:
            stage.align_controllers()
        stage.end(broker_id, is_clean=is_clean)
        lost.append(f"{'-' if is_clean else '!'}{broker_id}")
        if stage.up:
            stage.align_controllers()
            stage.settle()
    broker_ids = rng.sample(BROKER_IDS, rng.randint(1, 3))
    for broker_id in broker_ids:
        stage.start(broker_id)
        stage.align_controllers()
        stage.settle()
    return f"restart {lost} {broker_ids}"


def pause_broker(stage: Stage, rng: random.Random) -> str | None:
    """Pause a broker until it is taken for dead; meanwhile others lead, and may write."""
    if len(stage.up) < 2:
        return None
    broker_id = rng.choice(sorted(stage.up))
    stage.align_controllers()
    stage.pause(broker_id)
    stage.settle()
    written = produce(stage, rng)
    moved = reassign(stage, rng) if rng.random() < 0.4 else None
    stage.settle()
    stage.go_on(broker_id)
    stage.align_controllers()
    return f"pause {broker_id}, meanwhile {written}, {moved}"


def lose_directory(stage: Stage, rng: random.Random) -> str | None:
    """Take one of its log directories away from a broker; its next start has it again."""
    candidates = sorted(stage.up - stage.hurt)
    if not candidates:
        return None
    broker_id, name = rng.choice(candidates), rng.choice(LOG_DIRS)
    for cluster in stage.clusters:
        cluster.lose(broker_id, name)
    stage.hurt.add(broker_id)
    # The next checkpoint finds it.
    time.sleep(2)
    return f"lose {name} of {broker_id}"


def move_controller(stage: Stage, _rng: random.Random) -> str:
    """Have another controller elected, or the same one again."""
    stage.remove_controllers()
    stage.align_controllers()
    return f"delete /controller, now {stage.controllers()}"


def alter_broker_config(stage: Stage, rng: random.Random) -> str:
    """Change settings of a broker, or those of all."""
    broker_id = rng.choice(sorted(stage.up))
    name = rng.choice((str(broker_id), ""))
    configs = []
    for key, *values in rng.sample(_BROKER_CONFIGS, rng.randint(1, 2)):
        operation = rng.choice((0, 0, 1))
        value = rng.choice(values) if operation == 0 else None
        configs.append({"name": key, "config_operation": operation, "value": value})
    resource = {"resource_type": _BROKER, "resource_name": name, "configs": configs}
    stage.ask(broker_id, "IncrementalAlterConfigs", 1, {"resources": [resource]})
    return f"alter broker {name!r} {[list(one.values()) for one in configs]}"


def alter_quota(stage: Stage, rng: random.Random) -> str:
    """Set or remove a quota of a user, a client, both, an address, or of all of them."""
    kinds = rng.choice((["user"], ["client-id"], ["user", "client-id"], ["ip"]))
    entity = [
        {
            "entity_type": kind,
            "entity_name": rng.choice(
                ("10.0.0.1", None) if kind == "ip" else ("bob", "a b/c", "%", "*", None)
            ),
        }
        for kind in kinds
    ]
    key, *values = rng.choice(_QUOTAS) if kinds != ["ip"] else ("connection_creation_rate", 1e5)
    is_removal = rng.random() < 0.3
    op = {"key": key, "value": rng.choice(values), "remove": is_removal}
    body = {"entries": [{"entity": entity, "ops": [op]}], "validate_only": False}
    stage.ask(None, "AlterClientQuotas", 1, body)
    return f"quota {[list(one.values()) for one in entity]} {op}"


def alter_rules(stage: Stage, rng: random.Random) -> str:
    """Add a rule of access, or delete those that a filter finds."""
    rule = {
        "resource_type": rng.choice((2, 3, 4, 5)),
        "resource_name": rng.choice(("x", "y z", "pre", "*")),
        "resource_pattern_type": rng.choice((3, 3, 4)),
        "principal": rng.choice(("User:bob", "User:*", "User:CN=a,O=b")),
        "host": rng.choice(("*", "10.0.0.9")),
        "operation": rng.choice((2, 3, 4, 8)),
        "permission_type": rng.choice((2, 3)),
    }
    if rule["resource_type"] == 4:
        rule |= {"resource_name": "kafka-cluster", "resource_pattern_type": 3}
    to = rng.choice(sorted(stage.up))
    if rng.random() < 0.65:
        stage.ask(to, "CreateAcls", 3, {"creations": [rule]})
        return f"add rule {list(rule.values())}"
    one = {
        "resource_type_filter": rng.choice((1, rule["resource_type"])),
        "resource_name_filter": rng.choice((None, rule["resource_name"])),
        "pattern_type_filter": rng.choice((1, 2, 3, 4)),
        "principal_filter": rng.choice((None, rule["principal"])),
        "host_filter": None,
        "operation": rng.choice((1, rule["operation"])),
        "permission_type": 1,
    }
    stage.ask(to, "DeleteAcls", 3, {"filters": [one]})
    return f"delete rules {list(one.values())}"


def alter_users(stage: Stage, rng: random.Random) -> str:
    """Store or delete a credential."""
    name, mechanism = rng.choice(("bob", "eve l", "ü")), rng.choice((1, 2))
    body: dict[str, Any] = {"deletions": [], "upsertions": []}
    if rng.random() < 0.3:
        body["deletions"].append({"name": name, "mechanism": mechanism})
    else:
        one = {"name": name, "mechanism": mechanism, "iterations": 4096 + rng.randint(0, 2)}
        body["upsertions"].append(
            one | {"salt": rng.randbytes(10), "salted_password": rng.randbytes(32)}
        )
    stage.ask(None, "AlterUserScramCredentials", 0, body)
    return f"credential {name} {mechanism} {'-' if body['deletions'] else '+'}"


def announce_change(stage: Stage, rng: random.Random) -> str | None:
    """Write settings of a topic and their announcement, as old tools do."""
    if not own_topics(stage):
        return None
    name = rng.choice(own_topics(stage))
    config = {"retention.ms": "-1", "segment.bytes": rng.choice(("700", "2000"))}
    value = json.dumps({"version": 1, "config": config}, separators=(",", ":"))
    stage.write(f"/config/topics/{name}", value, is_set=True)
    change: dict[str, Any] = {"version": 2, "entity_path": f"topics/{name}"}
    if rng.random() < 0.5:
        change = {"version": 1, "entity_type": "topics", "entity_name": name}
    text = json.dumps(change, separators=(",", ":"))
    stage.write("/config/changes/config_change_", text, is_sequence=True)
    return f"announce {change} {config}"


OPERATIONS: Final = (
    (reassign, 8),
    (reassign_by_znode, 2),
    (elect, 4),
    (elect_by_znode, 1),
    (stop_broker, 6),
    (start_broker, 6),
    (restart_all, 2),
    (pause_broker, 3),
    (lose_directory, 3),
    (move_controller, 2),
    (alter_broker_config, 2),
    (alter_quota, 1),
    (alter_rules, 1),
    (alter_users, 1),
    (announce_change, 1),
)
