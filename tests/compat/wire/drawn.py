"""Bodies of requests drawn from a seed: each field of an API's layout from a pool of its values.

What a broker gave out (ids of topics, members, producers, sessions) is drawn as a `Given`, which
becomes the value that each side has under that name.
"""

from __future__ import annotations

import random
from typing import Any, Final, NamedTuple

from engine.wire.codec import message_codec
from engine.wire.layout import FieldLayout, StructLayout
from tests.compat.wire.batches import batch, messages, patched, records
from tests.compat.wire.pair import Side

Body = dict[str, Any]


class Given(NamedTuple):
    """A value that each broker gave out, by the name it was kept under, and one for none."""

    name: tuple[str, str]
    absent: Any

    def of(self, side: Side) -> Any:
        """Return what the side gave out."""
        return side.kept.get(self.name, self.absent)


#: Arrays in which Kafka fails, or answers at random, where one is named twice.
_DISTINCT: Final = {
    "protocols": "name",
    "transactions": "transactional_id",
    "resources": "resource_name",
}
_LONG_NAME: Final = "n" * 250
_INT32_MAX, _INT64_MAX = 2**31 - 1, 2**63 - 1
_EDGES: Final = {
    "int8": (-1, 0, 1, 2, 3, 127, -128),
    "int16": (-1, 0, 1, 2, 32767, -2),
    "int32": (-1, 0, 1, 2, -2, _INT32_MAX, -(2**31)),
    "int64": (-1, 0, 1, 2, -2, 5, _INT64_MAX, -(2**63)),
    "float64": (1000.0, 0.0, 1.0, -1.0, 0.5, 1e300, float("inf")),
    "bool": (False, True),
    "bytes": (b"", b"x", b"\0\0\0\0\0\0"),
}
_STATES: Final = ("Stable", "Empty", "stable", "Dead", "PreparingRebalance", "", "NoSuch")
_TRANSACTION_STATES: Final = ("Ongoing", "Empty", "CompleteCommit", "ongoing", "", "NoSuch")
_CONFIGS: Final = (
    "retention.ms",
    "cleanup.policy",
    "max.message.bytes",
    "min.insync.replicas",
    "message.timestamp.type",
    "segment.bytes",
    "compression.type",
    "unclean.leader.election.enable",
    "follower.replication.throttled.replicas",
    "no.such.key",
    "",
)
_VALUES: Final = ("1000000", "compact", "delete", "compact,delete", "-1", "0", "", "x", "true", "1")
_BROKER_CONFIGS: Final = (
    "log.retention.ms",
    "leader.replication.throttled.rate",
    "log.cleaner.threads",
    "num.io.threads",
    "advertised.listeners",
    "no.such.key",
    "broker.id",
)


class Draw:
    """Draws bodies for one stage: topics, groups and transactional ids with a prefix."""

    def __init__(self, rng: random.Random, prefix: str, now_ms: int) -> None:
        self.rng = rng
        self.now_ms = now_ms
        self.topics = [f"{prefix}-{suffix}" for suffix in "ab"]
        self.new_topics = [f"{prefix}-new{n}" for n in range(4)]
        self.groups = [f"{prefix}-g{n}" for n in range(3)]
        self.transactional_ids = [f"{prefix}-t{n}" for n in range(2)]
        self.prefix = prefix

    def body(self, name: str, version: int) -> Body:
        """Return a drawn body of a request."""
        return self._struct(name, message_codec(f"{name}Request", version).layout, ())

    def _struct(self, name: str, layout: StructLayout, path: tuple[str, ...]) -> Body:
        fields = [field for field in layout.fields if field.place != "absent"]
        out = {
            field.attribute: self._field(name, field, (*path, field.attribute)) for field in fields
        }
        return _suited(self, name, out)

    def _field(self, name: str, field: FieldLayout, path: tuple[str, ...]) -> Any:
        # Kafka never answers where records are null.
        if field.nullable and field.type != "records" and self.rng.random() < 0.12:
            return None
        if not field.is_array:
            if field.struct is not None:
                return self._struct(name, field.struct, path)
            return self._scalar(name, field, path)
        count = self.rng.choices((0, 1, 2, 3), (1, 8, 4, 2))[0]
        if field.struct is not None:
            out = [self._struct(name, field.struct, path) for _ in range(count)]
        else:
            out = [self._scalar(name, field, path) for _ in range(count)]
        if out and self.rng.random() < 0.07:
            out.append(out[0])
        return out

    def _scalar(self, name: str, field: FieldLayout, path: tuple[str, ...]) -> Any:
        pool = self._pool(name, path)
        is_odd = self.rng.random() < 0.1
        if pool and not (is_odd and field.type in _EDGES):
            return self.rng.choice(pool)
        if field.type == "string":
            return self.rng.choice(("", "x", "a/b"))
        if field.type == "uuid":
            return self._topic_id()
        if field.type == "records":
            return self._records()
        return self.rng.choice(_EDGES[field.type])

    def topic(self) -> str:
        """Return a name of a topic, most often of one that is there."""
        if self.rng.random() < 0.75:
            return self.rng.choice(self.topics)
        odd = (f"{self.prefix}-gone", "", "a/b", ".", _LONG_NAME, "__consumer_offsets")
        return self.rng.choice((*self.new_topics, *odd))

    def _topic_id(self) -> Any:
        odd = [bytes(16), b"\x07" * 16, b"\0" * 15 + b"\1"]
        found: list[Any] = [Given(("topic", one), b"\x09" * 16) for one in self.topics]
        return self.rng.choice(found * 3 + odd)

    def _member(self) -> Any:
        odd = ["", "x"]
        found: list[Any] = [Given(("member", group), "nobody") for group in self.groups]
        return self.rng.choice(found * 2 + odd)

    def _producer(self, what: str, absent: int) -> list[Any]:
        return [Given((what, one), absent) for one in (*self.transactional_ids, "")]

    def _records(self) -> Any:
        rng = self.rng
        time_ms = rng.choice((self.now_ms, self.now_ms, self.now_ms, 0, -1, self.now_ms + 10**8))
        found = records(rng.choice((1, 2, 5)), time_ms)
        kind = rng.random()
        if kind < 0.1:
            return messages(found, rng.choice((0, 1)))
        raw = batch(found)
        if kind < 0.5:
            return raw
        if kind < 0.55:
            return rng.choice((b"", b"x", raw + raw, raw[:-1], raw + b"\0"))
        if kind < 0.65:
            edges = (-1, 0, 1, 5, 1000)
            key = rng.choice(("base_offset", "last_offset_delta", "record_count", "attributes"))
            return patched(raw, **{key: rng.choice(edges)})
        return _Sequenced(
            raw,
            rng.choice(self._producer("producer", 10**9)),
            Given(("epoch", ""), 0) if rng.random() < 0.8 else rng.choice((-1, 1, 7)),
            rng.choice((0, 0, 1, 2, 5, -1, _INT32_MAX)),
            16 if rng.random() < 0.4 else 0,
        )

    def _pool(self, name: str, path: tuple[str, ...]) -> Any:  # noqa: PLR0911
        last = path[-1]
        if last in ("topic", "topic_name") or (last == "name" and "topics" in path[-2:]):
            if name == "CreateTopics":
                return [self.topic(), *self.new_topics, *self.new_topics]
            return [self.topic()]
        if last == "name" and path[-2:] == ("topic_data", "name"):
            return [self.topic()]
        if last in ("group_id", "groups", "groups_names", "group_ids"):
            return [*self.groups, *self.groups, *self.groups, f"{self.prefix}-gone", ""]
        if last in ("transactional_id", "transactional_ids"):
            return [*self.transactional_ids, *self.transactional_ids, f"{self.prefix}-gone", ""]
        if last == "member_id":
            return [self._member()]
        if last == "producer_id":
            return [*self._producer("producer", 10**9), -1]
        if last == "producer_epoch":
            return [*self._producer("epoch", 0)] * 2 + [-1, 1]
        if name == "FindCoordinator" and last in ("key", "coordinator_keys"):
            return [*self.groups, *self.transactional_ids, ""]
        if last in ("generation_id", "generation_id_or_member_epoch"):
            return [*(Given(("generation", one), 1) for one in self.groups), -1, 0, 1]
        found = _POOLS.get(f"{name}.{last}") or _POOLS.get(last)
        return found(self) if callable(found) else found


class _Sequenced(NamedTuple):
    """A batch of a producer whose id and epoch each side gave out."""

    raw: bytes
    producer_id: Any
    epoch: Any
    sequence: int
    attributes: int


def _suited(draw: Draw, name: str, out: Body) -> Body:  # noqa: C901, PLR0912
    """Return a struct whose fields fit together where drawing them apart seldom would."""
    rng = draw.rng
    if name == "JoinGroup" and "protocol_type" in out:
        out["rebalance_timeout_ms"] = 300
        out["session_timeout_ms"] = rng.choice((6000, 10_000, 10_000, 1, -1, 10**9))
    if name == "Fetch" and "max_wait_ms" in out:
        out["max_wait_ms"] = rng.choice((0, 0, 10, -1))
        out["replica_id"] = rng.choice((-1, -1, -1, -2, 7))
        out.pop("replica_state", None)
    if name == "Fetch" and "session_id" in out:
        # For an id beyond those of its shards Kafka fails.
        out["session_id"] = rng.choice((0, 0, 0, 77))
    for key, what in _DISTINCT.items():
        if key in out and what in (out[key][0] if out[key] else ()):
            out[key] = list({str(one[what]): one for one in out[key]}.values())
    if "timeout_ms" in out:
        out["timeout_ms"] = rng.choice((3000, 3000, 3000, 10_000))
    if out.get("resource_type") == 4 and "configs" in out:
        for one in out["configs"] or ():
            one["name"] = rng.choice(_BROKER_CONFIGS)
    if out.get("resource_type") == 4:
        out["resource_name"] = rng.choice(("1", "", "7", "x", "1"))
    elif "resource_type" in out and "resource_name" in out:
        out["resource_name"] = draw.topic()
    if out.get("transactional_id") and "producer_id" in out and rng.random() < 0.8:
        out["producer_id"] = Given(("producer", out["transactional_id"]), 10**9)
        out["producer_epoch"] = Given(("epoch", out["transactional_id"]), 0)
    if name == "InitProducerId" and rng.random() < 0.8:
        out |= {key: -1 for key in ("producer_id", "producer_epoch") if key in out}
    group = out.get("group_id")
    if group and rng.random() < 0.8:
        if "member_id" in out:
            out["member_id"] = Given(("member", group), "")
        for key in ("generation_id", "generation_id_or_member_epoch"):
            if key in out:
                out[key] = Given(("generation", group), 1)
        for one in out.get("assignments") or ():
            one["member_id"] = Given(("member", group), "")
    if name == "CreateTopics" and out.get("assignments") and rng.random() < 0.7:
        out |= {"num_partitions": -1, "replication_factor": -1}
    return out


_PARTITIONS: Final = (0, 0, 0, 1, 1, 2, -1, 99)
_EPOCHS: Final = (-1, -1, -1, 0, 0, 1, 5)
_OFFSETS: Final = (0, 0, 1, 2, 3, 5, 10, -1, -2)
_POOLS: Final[dict[str, Any]] = {
    "partition": _PARTITIONS,
    "partitions": _PARTITIONS,
    "partition_index": _PARTITIONS,
    "partition_indexes": _PARTITIONS,
    "index": _PARTITIONS,
    "CreateTopics.partition_index": (0, 0, 1, 2, -1),
    "CreateTopics.num_partitions": (1, 1, 2, 3, -1, 0, -2),
    "CreateTopics.replication_factor": (1, 1, 1, -1, 0, 2, -2),
    "CreatePartitions.count": (1, 2, 3, 3, 4, 0, -1),
    "broker_ids": (1, 1, 1, 1, 7, -1),
    "replicas": (1, 1, 1, 1, 7, -1),
    "replica_id": (-1, -1, -1, -2, 7),
    "current_leader_epoch": _EPOCHS,
    "leader_epoch": _EPOCHS,
    "last_fetched_epoch": (-1, -1, -1, 0, 5),
    "committed_leader_epoch": _EPOCHS,
    "timestamp": lambda draw: (-1, -2, -3, -4, -5, -6, 0, draw.now_ms, draw.now_ms + 10**9),
    "isolation_level": (0, 1, 0, 1, 2, -1),
    "offset": _OFFSETS,
    "fetch_offset": _OFFSETS,
    "committed_offset": _OFFSETS,
    "committed_metadata": ("", "m", "m" * 4096, "m" * 4097),
    "partition_max_bytes": (10**6, 10**6, 0, 1, 100, -1),
    "max_bytes": (10**6, 10**6, 0, 1, 100, -1),
    "min_bytes": (0, 1, 1, -1, 10**6),
    "session_id": (0, 0, 0, 77),
    "session_epoch": (-1, -1, 0, 0, 1, 5),
    "acks": (-1, -1, -1, 1, 1, 2, -2),
    "key_type": (0, 0, 1, 1, 2, 3, -1),
    "protocol_type": ("consumer", "consumer", "consumer", "other", ""),
    "protocol_name": ("range", "range", "other", ""),
    "JoinGroup.name": ("range", "range", "other", ""),
    "group_instance_id": (None, None, None, None, "i1", "i2", ""),
    "states_filter": _STATES,
    "types_filter": ("classic", "consumer", "Classic", "", "nosuch", "share"),
    "state_filters": _TRANSACTION_STATES,
    "duration_filter": (-1, 0, 10**12),
    "transaction_timeout_ms": (60_000, 60_000, 60_000, 0, -1, 10**9),
    "resource_type": (2, 2, 2, 2, 4, 4, 0, 1, 3, 16, 32, 127, -1),
    "configuration_keys": _CONFIGS,
    "configs.name": _CONFIGS,
    "CreateTopics.name": _CONFIGS,
    "AlterConfigs.name": _CONFIGS,
    "IncrementalAlterConfigs.name": _CONFIGS,
    "IncrementalAlterConfigs.value": _VALUES,
    "AlterConfigs.value": _VALUES,
    "CreateTopics.value": _VALUES,
    "config_operation": (0, 0, 0, 1, 2, 3, 4, -1),
    "path": ("/nowhere", "relative", ""),
    "election_type": (0, 1, 0, 1, 2, -1),
    "entity_type": ("user", "client-id", "user", "client-id", "ip", "nosuch", ""),
    "entity_name": ("u1", "c1", "10.0.0.1", "", None),
    "match_type": (0, 1, 2, 3, -1),
    "match": ("u1", "c1", "10.0.0.1", "", None),
    "AlterClientQuotas.key": (
        "producer_byte_rate",
        "consumer_byte_rate",
        "request_percentage",
        "controller_mutation_rate",
        "connection_creation_rate",
        "nosuch",
        "",
    ),
    "mechanism": (1, 2, 1, 2, 0, 3),
    "iterations": (4096, 8192, 4095, 16384, 16385, 0),
    "DescribeUserScramCredentials.name": ("s1", "s2", "gone", ""),
    "AlterUserScramCredentials.name": ("s1", "s2", "gone", ""),
    "feature": ("metadata.version", "kraft.version", "x", ""),
    "principal": ("User:a", "a", ""),
    "principal_filter": ("User:a", "a", ""),
    "endpoint_type": (1, 1, 2, 0, 3),
    "client_software_name": ("x", "", "a b"),
    "client_software_version": ("1", ""),
}


def resolved(value: Any, side: Side) -> Any:
    """Return a drawn body with what a side gave out."""
    if isinstance(value, Given):
        return value.of(side)
    if isinstance(value, _Sequenced):
        fields = {
            "producer_id": resolved(value.producer_id, side),
            "producer_epoch": resolved(value.epoch, side),
            "base_sequence": value.sequence,
            "attributes": value.attributes,
        }
        return patched(value.raw, **fields)
    if isinstance(value, dict):
        return {key: resolved(one, side) for key, one in value.items()}
    if isinstance(value, list):
        return [resolved(one, side) for one in value]
    return value
