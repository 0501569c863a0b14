"""Metadata, CreateTopics, DeleteTopics and CreatePartitions."""

from __future__ import annotations

from typing import Any

from tests.compat.wire.pair import Pair, Side, versions

Body = dict[str, Any]


def _create(*topics: Body, **more: Any) -> Body:
    plain = {"num_partitions": 1, "replication_factor": 1}
    return {"topics": [plain | one for one in topics], "timeout_ms": 800} | more


def _assigned(*pairs: tuple[int, list[int]]) -> Body:
    found = [{"partition_index": index, "broker_ids": ids} for index, ids in pairs]
    return {"num_partitions": -1, "replication_factor": -1, "assignments": found}


def _configs(*pairs: tuple[str, str | None]) -> Body:
    return {"configs": [{"name": key, "value": value} for key, value in pairs]}


def _one_topic_bodies() -> dict[str, Body]:
    return {
        "plain": {},
        "3 partitions": {"num_partitions": 3},
        "partitions 0": {"num_partitions": 0},
        "partitions -1": {"num_partitions": -1},
        "partitions -2": {"num_partitions": -2},
        "replication 0": {"replication_factor": 0},
        "replication -1": {"replication_factor": -1},
        "replication -2": {"replication_factor": -2},
        "replication 2": {"replication_factor": 2},
        "both -1": {"num_partitions": -1, "replication_factor": -1},
        "partitions 0 and replication 2": {"num_partitions": 0, "replication_factor": 2},
        "assigned": _assigned((0, [1]), (1, [1])),
        "assigned in disorder": _assigned((1, [1]), (0, [1])),
        "assigned from 1": _assigned((1, [1]), (2, [1])),
        "assigned with gap": _assigned((0, [1]), (2, [1])),
        "assigned -1": _assigned((-1, [1])),
        "assigned twice": _assigned((0, [1]), (0, [1])),
        "assigned unequal": _assigned((0, [1]), (1, [1, 2])),
        "assigned replica twice": _assigned((0, [1, 1])),
        "assigned none": _assigned((0, [])),
        "assigned unknown": _assigned((0, [7])),
        "assigned known and unknown": _assigned((0, [1, 7])),
        "assigned negative": _assigned((0, [-1])),
        "assigned and counts": _assigned((0, [1])) | {"num_partitions": 1},
        "assigned and replication": _assigned((0, [1])) | {"replication_factor": 1},
        "config": _configs(("retention.ms", "1000")),
        "configs": _configs(("retention.ms", "1000"), ("cleanup.policy", "compact")),
        "config twice": _configs(("retention.ms", "1000"), ("retention.ms", "2000")),
        "config unknown": _configs(("no.such.key", "1")),
        "config empty name": _configs(("", "1")),
        "config bad number": _configs(("retention.ms", "x")),
        "config below": _configs(("retention.ms", "-2")),
        "config above int": _configs(("segment.bytes", "3000000000")),
        "config small segment": _configs(("segment.bytes", "13")),
        "config empty value": _configs(("retention.ms", "")),
        "config spaces": _configs(("retention.ms", " 1000 ")),
        "config null": _configs(("retention.ms", None)),
        "config bad policy": _configs(("cleanup.policy", "burn")),
        "config empty policy": _configs(("cleanup.policy", "")),
        "config both policies": _configs(("cleanup.policy", "delete,compact")),
        "config policy spaces": _configs(("cleanup.policy", " compact , delete ")),
        "config bad codec": _configs(("compression.type", "brotli")),
        "config codec upper": _configs(("compression.type", "GZIP")),
        "config bad level": _configs(("compression.gzip.level", "10")),
        "config level 0": _configs(("compression.gzip.level", "0")),
        "config bad version": _configs(("message.format.version", "9.9")),
        "config old version": _configs(("message.format.version", "0.8.2")),
        "config bad boolean": _configs(("preallocate", "yes")),
        "config boolean upper": _configs(("preallocate", "TRUE")),
        "config lags": _configs(("min.compaction.lag.ms", "10"), ("max.compaction.lag.ms", "5")),
        "config local": _configs(("local.retention.ms", "10"), ("retention.ms", "5")),
        "config remote": _configs(("remote.storage.enable", "true")),
        "config throttled": _configs(("leader.replication.throttled.replicas", "0:1,1:1")),
        "config throttled all": _configs(("leader.replication.throttled.replicas", "*")),
        "config throttled bad": _configs(("leader.replication.throttled.replicas", "zero")),
        "config min isr 0": _configs(("min.insync.replicas", "0")),
        "config ratio": _configs(("min.cleanable.dirty.ratio", "0.3")),
        "config ratio above": _configs(("min.cleanable.dirty.ratio", "1.3")),
        "config time type": _configs(("message.timestamp.type", "Never")),
        "config difference": _configs(("message.timestamp.difference.max.ms", "5")),
        "config before": _configs(("message.timestamp.before.max.ms", "-1")),
    }


_NAMES = (
    *("", ".", "..", "a b", "a/b", "a:b", "ä", "x" * 249, "x" * 250, "-", "_", "a\x00b"),
    *("__consumer_offsets", "__transaction_state", "__remote_log_metadata", "__cluster_metadata"),
)


def create(pair: Pair) -> None:
    """Every body in every version: for real, and only tried out."""
    for version in versions("CreateTopics"):
        for at, (what, body) in enumerate(_one_topic_bodies().items()):
            name = pair.name(f"v{version}-{at}")
            for only in (True, False) if version else (False,):
                sent = _create({"name": name} | body, validate_only=only)
                pair.ask(f"{what} only={only}", "CreateTopics", version, sent)
            known = {"topics": [{"name": name}]}
            pair.ask(f"after {what}", "Metadata", 9, known)
            if version == 5:
                requested = [{"resource_type": 2, "resource_name": name}]
                pair.ask(f"after {what}", "DescribeConfigs", 2, {"resources": requested})
    pair.settle()


def create_names(pair: Pair) -> None:
    """Names that are wrong, taken, alike, or several in one request."""
    taken = pair.topic("taken.a")
    for version in versions("CreateTopics"):
        for name in _NAMES[:12] if version else ("", "a/b", ".."):
            sent = _create({"name": name}, validate_only=True)
            pair.ask(f"name {name[:20]!r}", "CreateTopics", version, sent)
        for name in _NAMES[12:] if version else ():
            sent = _create({"name": name}, validate_only=True)
            pair.ask(f"name {name}", "CreateTopics", version, sent)
        for name in (taken, taken.replace(".", "_")):
            sent = _create({"name": name})
            pair.ask(f"taken {name}", "CreateTopics", version, sent)
        a, b = pair.name(f"two{version}a"), pair.name(f"two{version}b")
        dots = pair.name(f"dots{version}")
        for what, names in {
            "two": (a, b),
            "twice": (a + "2", a + "2"),
            "three times and another": (a + "3", a + "3", b + "3", a + "3"),
            "alike in one": (f"{dots}.x_y", f"{dots}_x.y"),
            "one bad": (a + "4", "a/b"),
            "none": (),
        }.items():
            sent = _create(*({"name": name} for name in names))
            pair.ask(what, "CreateTopics", version, sent)
            requested = {"topics": [{"name": name} for name in set(names)]}
            if names:
                pair.ask(f"after {what}", "Metadata", 4, requested)
        for timeout in (0, -1):
            name = pair.name(f"timeout{version}{timeout}")
            sent = _create({"name": name}, timeout_ms=timeout)
            pair.ask(f"timeout {timeout}", "CreateTopics", version, sent)


def delete(pair: Pair) -> None:
    """By name, by id, by both, unknown, twice, and not to be deleted."""
    for version in versions("DeleteTopics"):
        names = [pair.topic(f"v{version}-{n}", partitions=2) for n in range(6)]
        gone = pair.name("gone")

        def by_name(*found: str) -> Body:
            return {
                "topic_names": list(found),
                "topics": [{"name": name} for name in found],
                "timeout_ms": 5000,
            }

        for what, found in {
            "one": (names[0],),
            "again": (names[0],),
            "twice in one": (names[1], names[1]),
            "unknown": (gone,),
            "bad name": ("a/b", ""),
            "known and unknown": (names[2], gone),
            "none": (),
        }.items():
            pair.ask(what, "DeleteTopics", version, by_name(*found))
            requested = {"topics": [{"name": name} for name in set(found)]}
            if found:
                pair.ask(f"after {what}", "Metadata", 9, requested)
        for timeout, name in ((0, names[4]), (-1, names[5])):
            sent = by_name(name) | {"timeout_ms": timeout}
            pair.ask(f"timeout {timeout}", "DeleteTopics", version, sent)
            pair.settle()
            pair.ask(f"after timeout {timeout}", "Metadata", 9, {"topics": [{"name": name}]})
    _delete_by_id(pair)


def _delete_by_id(pair: Pair) -> None:
    names = [pair.topic(f"id-{n}") for n in range(4)]
    stray = bytes(15) + b"\x05"

    def of(*found: tuple[int | None, str | bytes | None]) -> Any:
        def made(side: Side) -> Body:
            out = []
            for index, other in found:
                one: Body = {"name": other if isinstance(other, str) else None}
                if isinstance(other, bytes):
                    one["topic_id"] = other
                elif index is not None:
                    one["topic_id"] = side.topic_ids[names[index]]
                out.append(one)
            return {"topics": out, "timeout_ms": 5000}

        return made

    for what, body in {
        "known id": of((0, None)),
        "the same id": of((0, None)),
        "unknown id": of((None, stray)),
        "zero id": of((None, bytes(16))),
        "id and its name": of((1, names[1])),
        "id and another name": of((1, names[2])),
        "id twice": of((1, None), (1, None)),
        "id, then its name": of((2, None), (None, names[2])),
        "two ids": of((2, None), (3, None)),
    }.items():
        pair.ask(what, "DeleteTopics", 6, body)
    for name in names:
        pair.ask("after ids", "Metadata", 9, {"topics": [{"name": name}]})


def partitions(pair: Pair) -> None:
    """Counts and assignments, good and bad, tried out and for real."""
    for version in versions("CreatePartitions"):
        name = pair.topic(f"grows{version}", partitions=2)
        cases: dict[str, list[Body]] = {
            "fewer": [{"name": name, "count": 1}],
            "the same": [{"name": name, "count": 2}],
            "0": [{"name": name, "count": 0}],
            "-1": [{"name": name, "count": -1}],
            "unknown": [{"name": pair.name("gone"), "count": 3}],
            "bad name": [{"name": "a/b", "count": 3}],
            "empty name": [{"name": "", "count": 3}],
            "twice": [{"name": name, "count": 3}, {"name": name, "count": 4}],
            "none": [],
        }
        for what, ids in {
            "assigned unknown": [[7]],
            "assigned too many": [[1], [1]],
            "assigned none": [],
            "assigned empty": [[]],
            "assigned two": [[1, 2]],
            "assigned replica twice": [[1, 1]],
            "assigned negative": [[-1]],
            "assigned": [[1]],
        }.items():
            made = [{"broker_ids": found} for found in ids]
            cases[what] = [{"name": name, "count": 3, "assignments": made}]
        cases |= {
            "more": [{"name": name, "count": 5, "assignments": None}],
            "more and unknown": [
                {"name": pair.name("gone"), "count": 3, "assignments": None},
                {"name": name, "count": 6, "assignments": None},
            ],
            "internal": [{"name": "__consumer_offsets", "count": 60, "assignments": None}],
        }
        for what, requested in cases.items():
            topics = [{"assignments": None} | one for one in requested]
            for only in (True, False):
                sent = {"topics": topics, "timeout_ms": 5000, "validate_only": only}
                pair.ask(f"{what} only={only}", "CreatePartitions", version, sent)
            pair.ask(f"after {what}", "Metadata", 9, {"topics": [{"name": name}]})
        for timeout, count in ((0, 8), (-1, 9)):
            one = {"name": name, "count": count, "assignments": None}
            sent = {"topics": [one], "timeout_ms": timeout}
            pair.ask(f"timeout {timeout}", "CreatePartitions", version, sent)
            pair.settle()
        pair.ask("after all", "Metadata", 9, {"topics": [{"name": name}]})


def metadata(pair: Pair) -> None:
    """Topics by name and id, all, none, twice, wrong; with and without authorized operations."""
    name, other = pair.topic("m1", partitions=3), pair.topic("m2")
    for version in versions("Metadata"):
        for what, names in {
            "one": [name],
            "two": [other, name],
            "twice": [name, name],
            "unknown": [pair.name("gone")],
            "known and unknown": [pair.name("gone"), name],
            "bad": ["a/b"],
            "empty name": [""],
            "too long": ["x" * 250],
            "dots": [".."],
            "internal": ["__consumer_offsets"],
            "none": [],
        }.items():
            if what == "none" and version == 0:
                continue
            for auto in (True, False):
                for operations in (True, False):
                    sent = {
                        "topics": [{"name": one} for one in names],
                        "allow_auto_topic_creation": auto,
                        "include_cluster_authorized_operations": operations and version < 11,
                        "include_topic_authorized_operations": operations,
                    }
                    pair.ask(f"{what} {auto} {operations}", "Metadata", version, sent)
    for version in (10, 11, 12):
        for what, of in {
            "id": lambda side: {"topic_id": side.topic_ids[name], "name": None},
            "id and name": lambda side: {"topic_id": side.topic_ids[name], "name": name},
            "id and other name": lambda side: {"topic_id": side.topic_ids[name], "name": other},
            "unknown id": lambda _side: {"topic_id": bytes(15) + b"\x05", "name": None},
            "no id and no name": lambda _side: {"name": None},
        }.items():
            pair.ask(what, "Metadata", version, lambda side, of=of: {"topics": [of(side)]})
        several = lambda side: {  # noqa: E731
            "topics": [
                {"topic_id": side.topic_ids[name], "name": None},
                {"topic_id": side.topic_ids[other], "name": None},
                {"topic_id": bytes(15) + b"\x06", "name": None},
            ]
        }
        pair.ask("several ids", "Metadata", version, several)
        mixed = lambda side: {  # noqa: E731
            "topics": [{"topic_id": side.topic_ids[name], "name": None}, {"name": other}]
        }
        pair.ask("id and a name", "Metadata", version, mixed)


def leaders(pair: Pair) -> None:
    """Elections where none is needed, of what is not there and of no known kind; reassignments."""
    name = pair.topic("leaders", partitions=2)
    requested = {
        "both": [{"topic": name, "partitions": [0, 1]}],
        "twice": [{"topic": name, "partitions": [0, 0]}],
        "unknown": [{"topic": pair.name("gone"), "partitions": [0]}],
        "partitions unknown": [{"topic": name, "partitions": [2, -1]}],
        "empty name": [{"topic": "", "partitions": [0]}],
        "no partitions": [{"topic": name, "partitions": []}],
        "none": [],
        "all": None,
    }
    for version in versions("ElectLeaders"):
        for what, topics in requested.items():
            for kind in (0, 1, 2, -1) if version else (0,):
                sent = {"election_type": kind, "topic_partitions": topics, "timeout_ms": 1000}
                pair.ask(f"{what} {kind}", "ElectLeaders", version, sent)
        for timeout_ms in (0, -1):
            sent = {"topic_partitions": requested["twice"], "timeout_ms": timeout_ms}
            pair.ask(f"timeout {timeout_ms}", "ElectLeaders", version, sent)
    for what, listed in {
        "known": [{"name": name, "partition_indexes": [0, 1, 5, -1]}],
        "unknown": [{"name": pair.name("gone"), "partition_indexes": [0]}],
        "none": [],
        "all": None,
    }.items():
        pair.ask(what, "ListPartitionReassignments", 0, {"topics": listed})


def all_topics(pair: Pair) -> None:
    """Every topic that there is by now, so that nothing of the cases before differs unseen."""
    pair.settle(1.0)
    for version in versions("Metadata"):
        pair.ask("all", "Metadata", version, {"topics": None if version else []})


CASES = {
    "topics.create": create,
    "topics.names": create_names,
    "topics.delete": delete,
    "topics.partitions": partitions,
    "topics.metadata": metadata,
    "topics.leaders": leaders,
}
LAST = {"topics.all": all_topics}
