"""Operations on topics, partitions and records, drawn and applied to both clusters."""

from __future__ import annotations

import json
import random
from typing import Any, Final

from engine.admin.replica_assignment import Placement, assign_replicas
from engine.replication.metadata_cache import BrokerNode
from tests.compat.cluster.folder_view import TRANSACTIONAL
from tests.compat.cluster.processes import BROKER_IDS, LOG_DIRS, RACKS
from tests.compat.cluster.stage import Stage
from tests.compat.wire.batches import batch, produce_body, records
from tests.compat.wire.pair import Side

TIMEOUT_MS: Final = 15_000
FIRST_TIME_MS: Final = 1_700_000_000_000
_TOPIC: Final = 2
_SET, _DELETE, _APPEND, _SUBTRACT = 0, 1, 2, 3
_CONFIGS: Final = (
    ("min.insync.replicas", "1", "2"),
    ("retention.ms", "-1"),
    ("segment.bytes", "600", "1500"),
    ("retention.bytes", "1200", "-1"),
    ("unclean.leader.election.enable", "true", "false"),
    ("max.message.bytes", "1000", "100000"),
    ("leader.replication.throttled.replicas", "0:1,0:2", "*"),
    ("compression.type", "producer"),
    ("message.timestamp.type", "CreateTime"),
    ("index.interval.bytes", "0", "100"),
)
#: Records are of the past; they must not be deleted for that.
_KEPT: Final = {"retention.ms": "-1"}


def a_partition(stage: Stage, rng: random.Random) -> tuple[str, int] | None:
    """Return any partition."""
    every = [(name, index) for name in own_topics(stage) for index in stage.topics[name]]
    return rng.choice(sorted(every)) if every else None


def own_topics(stage: Stage) -> list[str]:
    """Return the topics but for those of coordinators."""
    return sorted(name for name in stage.topics if not name.startswith("__"))


def some_replicas(rng: random.Random, count: int | None = None) -> list[int]:
    """Return brokers in any order."""
    return rng.sample(BROKER_IDS, count or rng.choice((1, 2, 2, 3, 3, 3)))


def create_topic(stage: Stage, rng: random.Random) -> str:
    """Create a topic with replicas where they are drawn; also with brokers that are down."""
    name = stage.new_name(rng.choice(("t", "t", "t", TRANSACTIONAL)))
    count = rng.randint(1, 3)
    replication = rng.choice((1, 2, 3, 3))
    assignments = [
        {"partition_index": index, "broker_ids": some_replicas(rng, replication)}
        for index in range(count)
    ]
    configs = dict(_KEPT)
    for key, *values in rng.sample(_CONFIGS, rng.randint(0, 3)):
        configs[key] = rng.choice(values)
    one = {
        "name": name,
        "num_partitions": -1,
        "replication_factor": -1,
        "assignments": assignments,
        "configs": [{"name": key, "value": value} for key, value in configs.items()],
    }
    wait_ms = TIMEOUT_MS if len(stage.up) == len(BROKER_IDS) else 1000
    stage.ask(None, "CreateTopics", 5, {"topics": [one], "timeout_ms": wait_ms})
    return f"create {name} {[part['broker_ids'] for part in assignments]} {configs}"


def create_by_znode(stage: Stage, rng: random.Random) -> str:
    """Create a topic as tools before 0.10 did: its nodes alone."""
    name = stage.new_name("z")
    partitions = {str(index): some_replicas(rng, 2) for index in range(rng.randint(1, 2))}
    config = json.dumps({"version": 1, "config": _KEPT}, separators=(",", ":"))
    stage.write(f"/config/topics/{name}", config)
    value = json.dumps({"version": 1, "partitions": partitions}, separators=(",", ":"))
    stage.write(f"/brokers/topics/{name}", value)
    return f"create by znode {name} {partitions}"


def delete_topic(stage: Stage, rng: random.Random) -> str | None:
    """Delete a topic by request, or by the node of old tools."""
    if not own_topics(stage):
        return None
    name = rng.choice(own_topics(stage))
    if rng.random() < 0.3:
        stage.write(f"/admin/delete_topics/{name}", None)
        return f"delete by znode {name}"
    wait_ms = TIMEOUT_MS if len(stage.up) == len(BROKER_IDS) else 1000
    body = {"topic_names": [name], "timeout_ms": wait_ms}
    stage.ask(None, "DeleteTopics", 5, body)
    return f"delete {name}"


def create_partitions(stage: Stage, rng: random.Random) -> str | None:
    """Add partitions to a topic, their replicas drawn."""
    if not own_topics(stage):
        return None
    name = rng.choice(own_topics(stage))
    partitions = stage.topics[name]
    replication = len(partitions.get(0, [1]))
    added = [some_replicas(rng, replication) for _ in range(rng.randint(1, 2))]
    one = {
        "name": name,
        "count": len(partitions) + len(added),
        "assignments": [{"broker_ids": replicas} for replicas in added],
    }
    wait_ms = TIMEOUT_MS if len(stage.up) == len(BROKER_IDS) else 1000
    stage.ask(None, "CreatePartitions", 3, {"topics": [one], "timeout_ms": wait_ms})
    return f"add partitions {name} {added}"


def alter_topic_config(stage: Stage, rng: random.Random) -> str | None:
    """Change settings of a topic one by one."""
    if not own_topics(stage):
        return None
    name = rng.choice(own_topics(stage))
    configs = []
    for key, *values in rng.sample(_CONFIGS, rng.randint(1, 3)):
        operation = rng.choice((_SET, _SET, _DELETE)) if key != "retention.ms" else _SET
        value = rng.choice(values) if operation == _SET else None
        configs.append({"name": key, "config_operation": operation, "value": value})
    if rng.random() < 0.3:
        operation = rng.choice((_APPEND, _SUBTRACT))
        key = "follower.replication.throttled.replicas"
        value = rng.choice(("0:1", "0:2,1:3"))
        configs.append({"name": key, "config_operation": operation, "value": value})
    resource = {"resource_type": _TOPIC, "resource_name": name, "configs": configs}
    to = rng.choice(sorted(stage.up))
    stage.ask(to, "IncrementalAlterConfigs", 1, {"resources": [resource]})
    return f"alter {name} {[list(one.values()) for one in configs]}"


def replace_topic_config(stage: Stage, rng: random.Random) -> str | None:
    """Replace all settings of a topic."""
    if not own_topics(stage):
        return None
    name = rng.choice(own_topics(stage))
    configs = dict(_KEPT)
    for key, *values in rng.sample(_CONFIGS, rng.randint(0, 3)):
        configs[key] = rng.choice(values)
    found = [{"name": key, "value": value} for key, value in configs.items()]
    resource = {"resource_type": _TOPIC, "resource_name": name, "configs": found}
    stage.ask(rng.choice(sorted(stage.up)), "AlterConfigs", 1, {"resources": [resource]})
    return f"replace settings of {name} {configs}"


def produce(stage: Stage, rng: random.Random) -> str | None:
    """Produce some batches to the leader of a partition."""
    picked = a_partition(stage, rng)
    leader = stage.leader(picked) if picked else None
    if picked is None or leader is None:
        return None
    acks = rng.choice((0, 1, -1, -1))
    if picked[0].startswith(TRANSACTIONAL):
        return None
    count = rng.randint(1, 6)
    producer = rng.random() < 0.4
    for at in range(count):
        number = rng.randint(1, 8)
        found = records(
            number,
            FIRST_TIME_MS + stage.next_number(),
            key=rng.choice((None, b"a", b"b")),
            size=rng.choice((5, 50, 150)),
        )
        settings: dict[str, Any] = {}
        if producer:
            producer_id, sequence = stage.producer(picked, number, leader)
            settings = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}
        body = produce_body(
            picked[0], batch(found, **settings), index=picked[1], acks=acks, timeout_ms=2000
        )
        if acks == 0:
            stage.pairs[leader].tell("Produce", 9, body)
        else:
            stage.ask(leader, "Produce", 9, body)
        if at == 0 and stage.answer_has_error():
            break
    kind = "idempotent" if producer else "produce"
    return f"{kind} {count} to {picked[0]}-{picked[1]} of {leader} acks {acks}"


def create_coordinators_topic(stage: Stage) -> None:
    """Create the topic of transactions, its replicas where both have them."""
    assignment = [{"partition_index": 0, "broker_ids": [1, 2, 3]}]
    configs = {"cleanup.policy": "compact", "compression.type": "uncompressed"}
    one = {
        "name": "__transaction_state",
        "num_partitions": -1,
        "replication_factor": -1,
        "assignments": assignment,
        "configs": [{"name": key, "value": value} for key, value in configs.items()],
    }
    stage.ask(None, "CreateTopics", 5, {"topics": [one], "timeout_ms": TIMEOUT_MS})


def transact(stage: Stage, rng: random.Random) -> str | None:
    """Commit or abort a transaction of some partitions; or leave it open until the next one."""
    coordinator = stage.leader(("__transaction_state", 0))
    names = [name for name in own_topics(stage) if name.startswith(TRANSACTIONAL)]
    every = [(name, index) for name in names for index in stage.topics[name]]
    if coordinator is None or not every:
        return None
    transactional_id = rng.choice(("one", "two"))
    body = {"transactional_id": transactional_id, "transaction_timeout_ms": 60_000}
    answers = stage.ask(coordinator, "InitProducerId", 4, body)
    if any(isinstance(one, str) or one.error_code for one in answers):
        return f"begin {transactional_id}: refused"
    producer = {key: getattr(answers[0], key) for key in ("producer_id", "producer_epoch")}
    partitions = rng.sample(sorted(every), min(len(every), rng.randint(1, 2)))
    for name, index in partitions:
        added = {f"v3_and_below_{key}": value for key, value in producer.items()} | {
            "v3_and_below_transactional_id": transactional_id,
            "v3_and_below_topics": [{"name": name, "partitions": [index]}],
        }
        stage.ask(coordinator, "AddPartitionsToTxn", 3, added)
        leader = stage.leader((name, index))
        if leader is None:
            continue
        found = records(rng.randint(1, 4), FIRST_TIME_MS + stage.next_number())
        raw = batch(found, is_transactional=True, base_sequence=0, **producer)
        sent = produce_body(name, raw, index=index, timeout_ms=2000)
        stage.ask(leader, "Produce", 9, sent | {"transactional_id": transactional_id})
    end = rng.choice((True, True, False, None))
    if end is not None:
        body = producer | {"transactional_id": transactional_id, "committed": end}
        stage.ask(coordinator, "EndTxn", 3, body)
    return f"transaction {transactional_id} of {partitions}, committed: {end}"


def delete_records(stage: Stage, rng: random.Random) -> str | None:
    """Delete records before an offset, or to the high watermark."""
    picked = a_partition(stage, rng)
    leader = stage.leader(picked) if picked else None
    if picked is None or leader is None:
        return None
    offset = rng.choice((-1, 0, 1, 3, 10, 25))
    partitions = [{"partition_index": picked[1], "offset": offset}]
    topics = [{"name": picked[0], "partitions": partitions}]
    stage.ask(leader, "DeleteRecords", 2, {"topics": topics, "timeout_ms": 3000})
    return f"delete records of {picked[0]}-{picked[1]} before {offset}"


def move_directory(stage: Stage, rng: random.Random) -> str | None:
    """Move a replica to a directory, or say where it is to be."""
    picked = a_partition(stage, rng)
    if picked is None:
        return None
    broker_id, name = rng.choice(sorted(stage.up)), rng.choice(LOG_DIRS)

    def body(side: Side) -> dict[str, Any]:
        cluster = next(one for one in stage.clusters if one.name == side.name)
        path = str(cluster.log_dir(broker_id, name))
        topics = [{"name": picked[0], "partitions": [picked[1]]}]
        return {"dirs": [{"path": path, "topics": topics}]}

    stage.ask(broker_id, "AlterReplicaLogDirs", 2, body)
    return f"move {picked[0]}-{picked[1]} of {broker_id} to {name}"


OPERATIONS: Final = (
    (create_topic, 8),
    (create_by_znode, 1),
    (delete_topic, 3),
    (create_partitions, 2),
    (alter_topic_config, 4),
    (replace_topic_config, 1),
    (produce, 12),
    (transact, 8),
    (delete_records, 3),
    (move_directory, 4),
)


def place_automatically(stage: Stage, rng: random.Random) -> str:
    """Have both place replicas as they like; check that each keeps to the rule, and delete them."""
    name = stage.new_name("auto")
    count, replication = rng.randint(1, 7), rng.randint(1, 3)
    one = {"name": name, "num_partitions": count, "replication_factor": replication}
    stage.ask(None, "CreateTopics", 5, {"topics": [one], "timeout_ms": TIMEOUT_MS})
    brokers = [BrokerNode(id_, (), RACKS[id_]) for id_ in BROKER_IDS]
    allowed = [
        {
            str(index): list(replicas)
            for index, replicas in assign_replicas(
                brokers, count, replication, Placement(start, shift)
            ).items()
        }
        for start in BROKER_IDS
        for shift in BROKER_IDS
    ]
    for cluster in stage.clusters:
        path = f"{cluster.root}/brokers/topics/{name}"
        node, _ = stage.client_of(path).get(path)
        found = json.loads(node)["partitions"]
        assert found in allowed, (cluster.name, count, replication, found)
    body = {"topic_names": [name], "timeout_ms": TIMEOUT_MS}
    stage.ask(None, "DeleteTopics", 5, body)
    return f"place {name} {count} {replication}"


def delete_all(stage: Stage) -> str:
    """Delete every topic."""
    names = own_topics(stage)
    stage.ask(None, "DeleteTopics", 5, {"topic_names": names, "timeout_ms": TIMEOUT_MS})
    return f"delete all {len(names)} topics"
