"""The values in the nodes of brokers, topics, controller and configs: Kafka's JSON, to the byte.

```
/cluster/id                 {"version":"1","id":"..."}
/brokers/ids/1              {"features":{},"listener_security_protocol_map":{...},"endpoints":[..],
                             "rack":"r1","jmx_port":-1,"port":9092,"host":"h","version":5,
                             "timestamp":"..."}                       rack only if there is one
/brokers/topics/t           {"partitions":{"0":[1,2]},"topic_id":"...","adding_replicas":{},
                             "removing_replicas":{},"version":3}
.../partitions/0/state      {"controller_epoch":1,"leader":1,"version":1,
                             "leader_recovery_state":1,"leader_epoch":0,"isr":[1,2]}
                                                     recovery state only while recovering
/controller                 {"version":2,"brokerid":1,"timestamp":"...","kraftControllerEpoch":-1}
/controller_epoch           1
/feature                    {"features":{},"version":2,"status":1}
/latest_producer_id_block   {"version":1,"broker":1,"block_start":"0","block_end":"999"}
/config/topics/t            {"version":1,"config":{...}}
config_change_...           {"version":2,"entity_path":"topics/t"}
/admin/...                  {"version":1,"partitions":[{"topic":"t","partition":0,...}]}
log_dir_event_...           {"version":1,"broker":1,"event":1}
```

Decoders accept every version that 3.9.1 reads, ignore unknown fields and raise InvalidZnodeValue
for anything else.

Source: kafka.zk.ZkData; `znodes.md` §1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from engine.config.java_properties import sort_in_java_order
from engine.model import TopicPartition
from engine.znode.json_text import (
    InvalidZnodeValue,
    Json,
    JsonObject,
    decode_object,
    encode_json,
    is_int32,
    scala_map_order,
)

#: Leader of a partition without one.
NO_LEADER = -1

_REGISTRATION_VERSION = 5
# Number of buckets of a Scala map that is created from four fields.
_FOUR_FIELDS_BUCKETS = 8
_LOG_DIR_FAILURE = 1


class BrokerRegistration(NamedTuple):
    """The registration of a broker; `endpoints` are strings such as `PLAINTEXT://host:9092`."""

    endpoints: tuple[str, ...]
    #: Security protocol by listener name.
    security_protocols: Mapping[str, str]
    host: str | None
    port: int
    timestamp_ms: int
    rack: str | None = None
    jmx_port: int = -1
    #: Supported features: name to `{"min_version": .., "max_version": ..}`.
    features: Mapping[str, Mapping[str, int]] = {}
    version: int = _REGISTRATION_VERSION


class PartitionAssignment(NamedTuple):
    """The replicas of a partition, and those that a reassignment is adding and removing."""

    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()


class TopicAssignment(NamedTuple):
    """The replicas of all partitions; only topics from before 2.8 have no id."""

    topic_id: str | None
    partitions: Mapping[int, PartitionAssignment]


class PartitionStateNode(NamedTuple):
    """Leader and ISR; the partition epoch is the node's version."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    #: 1 while an unclean leader recovers.
    leader_recovery_state: int = 0


class ControllerRegistration(NamedTuple):
    """The broker that is the controller, and its epoch in KRaft."""

    broker_id: int
    timestamp_ms: int
    kraft_controller_epoch: int = -1


class ProducerIdBlockNode(NamedTuple):
    """Producer ids of a broker, both ends inclusive."""

    broker_id: int
    first_producer_id: int
    last_producer_id: int


def encode_cluster_id(cluster_id: str) -> bytes:
    """Return the JSON of `/cluster/id` for a cluster id."""
    return encode_json({"version": "1", "id": cluster_id})


def decode_cluster_id(data: bytes | None, path: str) -> str:
    """Return the cluster id in the data of `/cluster/id`; raises InvalidZnodeValue."""
    return decode_object(data, path).text("id")


def encode_broker(registration: BrokerRegistration) -> bytes:
    """Encode a broker's registration as the JSON of `/brokers/ids/N`, in its version."""
    fields: dict[str, Json] = {
        "features": registration.features,
        "listener_security_protocol_map": dict(registration.security_protocols),
        "endpoints": registration.endpoints,
    }
    if registration.rack is not None:
        fields["rack"] = registration.rack
    fields |= {
        "jmx_port": registration.jmx_port,
        "port": registration.port,
        "host": registration.host,
        "version": registration.version,
        "timestamp": str(registration.timestamp_ms),
    }
    return encode_json(fields)


def decode_broker(data: bytes | None, path: str) -> BrokerRegistration:
    """Decode a broker's registration of version 1 to 5, or a later version of that form.

    Raises InvalidZnodeValue.
    """
    fields = decode_object(data, path)
    version = fields.integer("version")
    if version < 1:
        raise InvalidZnodeValue(path, "version 1 or later", version)
    host = fields.text("host") if fields.has("host") else None
    port = fields.integer("port")
    if version == 1:
        endpoints: tuple[str, ...] = (f"PLAINTEXT://{host}:{port}",)
    else:
        endpoints = fields.texts("endpoints")
    return BrokerRegistration(
        endpoints=endpoints,
        security_protocols=_security_protocols(fields, endpoints),
        host=host,
        port=port,
        timestamp_ms=fields.long("timestamp"),
        rack=fields.text("rack") if fields.has("rack") else None,
        jmx_port=fields.integer("jmx_port"),
        features=_features(fields),
        version=version,
    )


def encode_topic(assignment: TopicAssignment) -> bytes:
    """Encode a topic's replicas as the JSON of `/brokers/topics/NAME`, version 3."""
    partitions = assignment.partitions
    order = scala_map_order(map(str, partitions))
    adding = {str(p): replicas.adding_replicas for p, replicas in partitions.items()}
    removing = {str(p): replicas.removing_replicas for p, replicas in partitions.items()}
    fields: dict[str, Json] = {
        "version": 3,
        "partitions": {key: partitions[int(key)].replicas for key in order},
        "adding_replicas": _non_empty(adding),
        "removing_replicas": _non_empty(removing),
    }
    if assignment.topic_id is not None:
        fields["topic_id"] = assignment.topic_id
    keys = scala_map_order(fields, buckets=_FOUR_FIELDS_BUCKETS)
    return encode_json({key: fields[key] for key in keys})


def decode_topic(data: bytes | None, path: str) -> TopicAssignment:
    """Decode a topic's replicas of version 1 to 3, partitions in order of their numbers.

    Raises InvalidZnodeValue.
    """
    fields = decode_object(data, path)
    partitions = fields.inner("partitions")
    adding = fields.inner("adding_replicas") if fields.has("adding_replicas") else None
    removing = fields.inner("removing_replicas") if fields.has("removing_replicas") else None
    assignments = {}
    for name in partitions.names():
        is_number = name.isascii() and name.isdigit() and len(name) <= 10
        if not is_number or not is_int32(int(name)):
            raise InvalidZnodeValue(path, "the number of a partition", repr(name))
        assignments[int(name)] = PartitionAssignment(
            partitions.integers(name),
            adding.integers(name) if adding is not None and adding.has(name) else (),
            removing.integers(name) if removing is not None and removing.has(name) else (),
        )
    topic_id = fields.text("topic_id") if fields.has("topic_id") else None
    return TopicAssignment(topic_id, dict(sorted(assignments.items())))


def encode_partition_state(state: PartitionStateNode) -> bytes:
    """Encode a partition's leader and ISR as the JSON of its znode `state`."""
    fields: dict[str, Json] = {
        "controller_epoch": state.controller_epoch,
        "leader": state.leader,
        "version": 1,
    }
    if state.leader_recovery_state:
        fields["leader_recovery_state"] = state.leader_recovery_state
    fields |= {"leader_epoch": state.leader_epoch, "isr": state.isr}
    return encode_json(fields)


def decode_partition_state(data: bytes | None, path: str) -> PartitionStateNode:
    """Decode a partition's leader and ISR from its znode `state`; raises InvalidZnodeValue."""
    fields = decode_object(data, path)
    recovery = "leader_recovery_state"
    return PartitionStateNode(
        leader=fields.integer("leader"),
        leader_epoch=fields.integer("leader_epoch"),
        isr=fields.integers("isr"),
        controller_epoch=fields.integer("controller_epoch"),
        leader_recovery_state=fields.integer(recovery) if fields.has(recovery) else 0,
    )


def encode_controller(registration: ControllerRegistration) -> bytes:
    """Encode the controller's registration as the JSON of `/controller`, version 2."""
    return encode_json(
        {
            "version": 2,
            "brokerid": registration.broker_id,
            "timestamp": str(registration.timestamp_ms),
            "kraftControllerEpoch": registration.kraft_controller_epoch,
        }
    )


def decode_controller(data: bytes | None, path: str) -> ControllerRegistration:
    """Decode `/controller` of version 1 or 2; missing fields are -1. Raises InvalidZnodeValue."""
    fields = decode_object(data, path)
    kraft_epoch = "kraftControllerEpoch"
    return ControllerRegistration(
        fields.integer("brokerid"),
        fields.long("timestamp") if fields.has("timestamp") else -1,
        fields.integer(kraft_epoch) if fields.has(kraft_epoch) else -1,
    )


def encode_controller_epoch(epoch: int) -> bytes:
    """Return the text of `/controller_epoch` for an epoch."""
    return b"%d" % epoch


def decode_controller_epoch(data: bytes | None, path: str) -> int:
    """Return the epoch in the data of `/controller_epoch`; raises InvalidZnodeValue."""
    if data is None or not (data.isdigit() and len(data) <= 10 and is_int32(int(data))):
        raise InvalidZnodeValue(path, "an epoch", repr(data and data[:80]))
    return int(data)


def encode_features(features: Mapping[str, int]) -> bytes:
    """Encode finalized feature levels by name as the JSON of `/feature`, as enabled."""
    levels: dict[str, Json] = {
        name: {"max_version_level": level} for name, level in features.items()
    }
    return encode_json({"features": levels, "version": 2, "status": 1})


def decode_features(data: bytes | None, path: str) -> dict[str, int]:
    """Decode the finalized levels in `/feature`; empty if features are disabled.

    Raises InvalidZnodeValue.
    """
    fields = decode_object(data, path)
    if not 1 <= fields.integer("version") <= 2:
        raise InvalidZnodeValue(path, "version 1 or 2", fields.integer("version"))
    levels = fields.inner("features")
    features = {name: levels.inner(name).integer("max_version_level") for name in levels.names()}
    return features if fields.integer("status") == 1 else {}


def encode_producer_id_block(block: ProducerIdBlockNode) -> bytes:
    """Encode the last allocated block as the JSON of `/latest_producer_id_block`."""
    return encode_json(
        {
            "version": 1,
            "broker": block.broker_id,
            "block_start": str(block.first_producer_id),
            "block_end": str(block.last_producer_id),
        }
    )


def decode_producer_id_block(data: bytes | None, path: str) -> ProducerIdBlockNode | None:
    """Return the last allocated block of producer ids; None before the first one.

    Raises InvalidZnodeValue.
    """
    if data is None:
        return None
    fields = decode_object(data, path)
    return ProducerIdBlockNode(
        fields.integer("broker"), fields.long("block_start"), fields.long("block_end")
    )


def encode_config(config: Mapping[str, str]) -> bytes:
    """Return the JSON of an entity's settings, in the order in which Kafka writes them."""
    ordered: dict[str, Json] = {key: config[key] for key in sort_in_java_order(config)}
    return encode_json({"version": 1, "config": ordered})


def decode_config(data: bytes | None, path: str) -> dict[str, str]:
    """Decode an entity's settings; a node without data has none. Raises InvalidZnodeValue."""
    if data is None:
        return {}
    fields = decode_object(data, path)
    if not fields.has("config"):
        return {}
    config = fields.inner("config")
    return {name: config.text(name) for name in config.names()}


def encode_config_change(entity_path: str) -> bytes:
    """Return the JSON of a change note for an entity, which is written as in `topics/t1`."""
    return encode_json({"version": 2, "entity_path": entity_path})


def decode_config_change(data: bytes | None, path: str) -> str:
    """Return the entity of a change note of version 1 or 2, such as `topics/t1`.

    Raises InvalidZnodeValue.
    """
    fields = decode_object(data, path)
    version = fields.integer("version")
    if version == 1:
        return f"{fields.text('entity_type')}/{fields.text('entity_name')}"
    if version != 2:
        raise InvalidZnodeValue(path, "version 1 or 2", version)
    return fields.text("entity_path")


def encode_reassignment(replicas: Mapping[TopicPartition, tuple[int, ...]]) -> bytes:
    """Encode requested target replicas as the JSON of `/admin/reassign_partitions`."""
    partitions: list[Json] = [
        {"topic": partition.topic, "partition": partition.partition, "replicas": targets}
        for partition, targets in replicas.items()
    ]
    return encode_json({"version": 1, "partitions": partitions})


def decode_reassignment(data: bytes | None, path: str) -> dict[TopicPartition, tuple[int, ...]]:
    """Return the target replicas in `/admin/reassign_partitions`, by partition.

    Raises InvalidZnodeValue.
    """
    return {
        _partition(row): row.integers("replicas")
        for row in decode_object(data, path).inners("partitions")
    }


def encode_partitions(partitions: Iterable[TopicPartition]) -> bytes:
    """Return the JSON of partitions, for a preferred election or a note of changed ISRs."""
    listed: list[Json] = [
        {"topic": partition.topic, "partition": partition.partition} for partition in partitions
    ]
    return encode_json({"version": 1, "partitions": listed})


def decode_partitions(data: bytes | None, path: str) -> list[TopicPartition]:
    """Return the partitions of a preferred election, or of a note of changed ISRs.

    Raises InvalidZnodeValue.
    """
    return [_partition(row) for row in decode_object(data, path).inners("partitions")]


def encode_log_dir_event(broker_id: int) -> bytes:
    """Return the JSON of the node that reports a failed log directory of a broker."""
    return encode_json({"version": 1, "broker": broker_id, "event": _LOG_DIR_FAILURE})


def decode_log_dir_event(data: bytes | None, path: str) -> int:
    """Return the id of the broker whose log directory failed; raises InvalidZnodeValue."""
    return decode_object(data, path).integer("broker")


def _partition(fields: JsonObject) -> TopicPartition:
    """Return the partition that a JSON object names by its topic and number."""
    return TopicPartition(fields.text("topic"), fields.integer("partition"))


def _non_empty(replicas: Mapping[str, tuple[int, ...]]) -> dict[str, Json]:
    """Return the partitions with a non-empty list, in the order of Kafka's Scala map."""
    changing = {key: numbers for key, numbers in replicas.items() if numbers}
    return {key: changing[key] for key in scala_map_order(changing)}


def _security_protocols(fields: JsonObject, endpoints: tuple[str, ...]) -> dict[str, str]:
    """Return the security protocol of each listener name in a broker's registration."""
    if not fields.has("listener_security_protocol_map"):
        # Before version 4 a listener had the name of its protocol.
        names = [endpoint.partition("://")[0] for endpoint in endpoints]
        return {name: name for name in names}
    protocols = fields.inner("listener_security_protocol_map")
    return {name: protocols.text(name) for name in protocols.names()}


def _features(fields: JsonObject) -> dict[str, dict[str, int]]:
    """Return the version levels of each feature, empty for registrations without features."""
    if not fields.has("features"):
        return {}
    features = fields.inner("features")
    levels_by_name = {}
    for name in features.names():
        levels = features.inner(name)
        levels_by_name[name] = {label: levels.integer(label) for label in levels.names()}
    return levels_by_name
