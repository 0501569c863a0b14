"""Consumer groups: every version of every API, in the order of a group's life.

The brokers have `group.initial.rebalance.delay.ms=0`, so that a group of one is answered at once.
"""

from __future__ import annotations

from typing import Any

from tests.compat.wire.pair import Pair, Side, versions

Body = dict[str, Any]
SUBSCRIPTION = b"\0\1\0\0\0\1\0\1t\xff\xff\xff\xff\0\0\0\0"
_APIS = ("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup")


def _join(group: str, **more: Any) -> Body:
    return {
        "group_id": group,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": SUBSCRIPTION}],
    } | more


def found(pair: Pair, group: str) -> None:
    """Wait until both brokers coordinate a group."""
    before = list(pair.differences)
    for _ in range(50):
        answers = pair.ask(
            "stage", "FindCoordinator", 4, {"key_type": 0, "coordinator_keys": [group]}
        )
        ready = pair.ask("stage", "OffsetFetch", 5, {"group_id": group, "topics": []})
        if all(not one.coordinators[0].error_code for one in answers) and all(
            not one.error_code for one in ready
        ):
            break
        pair.settle()
    # While the topic comes into being the two differ.
    pair.differences[:] = before


def _keep(pair: Pair, answers: list[Any], name: str) -> None:
    for side, answer in zip(pair.sides, answers, strict=True):
        side.kept[name] = answer.member_id


def _as(name: str, body: Body) -> Any:
    """Return a body whose member id is one that each side gave out."""

    def of(side: Side) -> Body:
        return body | {"member_id": side.kept[name]}

    return of


def strangers(pair: Pair) -> None:
    """Requests about groups and members that nobody knows."""
    found(pair, "g")
    for version in versions("JoinGroup"):
        for label, more in (
            ("unknown member", {"member_id": "nobody"}),
            ("no group", {"group_id": ""}),
            ("short session", {"session_timeout_ms": 5_999}),
            ("long session", {"session_timeout_ms": 1_800_001}),
            ("no protocols", {"protocols": []}),
            ("no protocol type", {"protocol_type": ""}),
        ):
            group = pair.name(f"stranger-{version}-{label.replace(' ', '-')}")
            pair.ask(label, "JoinGroup", version, _join(group) | more, on=label)
    for version in versions("SyncGroup"):
        named = {"protocol_type": "consumer", "protocol_name": "range"}
        for label, more in (("unknown", {}), ("no group", {"group_id": ""})):
            body = {"group_id": "x", "generation_id": 1, "member_id": "m"} | named | more
            pair.ask(label, "SyncGroup", version, body)
        unnamed = {"group_id": "x", "generation_id": 1, "member_id": "m"}
        pair.ask("without protocol", "SyncGroup", version, unnamed)
    for version in versions("Heartbeat"):
        for group in ("x", ""):
            body = {"group_id": group, "generation_id": 1, "member_id": "m"}
            pair.ask(f"unknown {group!r}", "Heartbeat", version, body)
    for version in versions("LeaveGroup"):
        for group in ("x", ""):
            members = [{"member_id": "m"}, {"member_id": "", "group_instance_id": "i"}]
            body = {"group_id": group, "member_id": "m", "members": members}
            pair.ask(f"unknown {group!r}", "LeaveGroup", version, body)


def offsets(pair: Pair) -> None:
    """Offsets of no members: committed, fetched, deleted."""
    topic = pair.topic("committed", partitions=3)
    found(pair, "g")
    for version in versions("OffsetCommit")[1:]:
        group = pair.name(f"offsets-{version}")
        for label, more, one in (
            ("alone", {}, {}),
            ("metadata", {}, {"committed_metadata": "note", "committed_leader_epoch": 0}),
            ("null metadata", {}, {"committed_metadata": None}),
            ("long metadata", {}, {"committed_metadata": "x" * 4097, "partition_index": 1}),
            ("unknown partition", {}, {"partition_index": 9}),
            ("unknown topic", {}, {"name": "gone"}),
            ("retention", {"retention_time_ms": 60_000}, {"partition_index": 2}),
            ("generation", {"generation_id_or_member_epoch": 1, "member_id": "m"}, {}),
            ("member", {"member_id": "m"}, {}),
            ("no group", {"group_id": ""}, {}),
        ):
            partition = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
            named = {"committed_leader_epoch": -1, "commit_timestamp": -1} | one
            name = named.pop("name", topic)
            body = {
                "group_id": group,
                "generation_id_or_member_epoch": -1,
                "member_id": "",
                "retention_time_ms": -1,
                "topics": [{"name": name, "partitions": [partition | named]}],
            }
            pair.ask(label, "OffsetCommit", version, body | more)
        _fetch(pair, group, topic)
        for name, code_of in ((topic, "known"), ("gone", "unknown")):
            rows = [{"partition_index": n} for n in (0, 2, 9)]
            body = {"group_id": group, "topics": [{"name": name, "partitions": rows}]}
            pair.ask(f"delete of {code_of}", "OffsetDelete", 0, body)
        _fetch(pair, group, topic)
    pair.ask("unknown", "OffsetDelete", 0, {"group_id": "unknown", "topics": []})


def _fetch(pair: Pair, group: str, topic: str) -> None:
    for version in versions("OffsetFetch")[1:]:
        for label, name in (("known", group), ("unknown", "unknown"), ("no group", "")):
            for topics in ([{"name": topic, "partition_indexes": [0, 1, 2, 9]}], [], None):
                if topics is None and version < 2:
                    continue
                row = {"group_id": name, "topics": topics, "member_epoch": -1}
                body = {"group_id": name, "topics": topics, "groups": [row]}
                asked = "all" if topics is None else len(topics)
                pair.ask(f"{label} {asked}", "OffsetFetch", version, body)


def lives(pair: Pair) -> None:
    """A group of one: it joins, syncs, commits, is described, leaves, is deleted."""
    topic = pair.topic("t")
    found(pair, "g")
    for version in versions("JoinGroup"):
        _life(pair, topic, version)


def _life(pair: Pair, topic: str, version: int) -> None:
    group = pair.name(f"life-{version}")
    joined = pair.ask("new", "JoinGroup", version, _join(group))
    _keep(pair, joined, "m")
    if version >= 4:
        joined = pair.ask("given", "JoinGroup", version, _as("m", _join(group)))
    generation = {"group_id": group, "generation_id": 1}
    for at in versions("Heartbeat"):
        pair.ask("completing", "Heartbeat", at, _as("m", generation))
    _commit(pair, group, topic, "completing")
    pair.ask("completing", "DescribeGroups", 5, {"groups": [group]})
    named = {"protocol_type": "consumer", "protocol_name": "range"}
    for at in versions("SyncGroup"):
        if at >= 5:
            wrong = generation | named | {"protocol_name": "other"}
            pair.ask("other protocol", "SyncGroup", at, _as("m", wrong))

        def sync(side: Side, generation: Body = generation) -> Body:
            mine = {"member_id": side.kept["m"], "assignment": b"mine"}
            return generation | named | {"member_id": side.kept["m"], "assignments": [mine]}

        pair.ask("leader", "SyncGroup", at, sync)
    pair.ask("old generation", "SyncGroup", 4, _as("m", generation | {"generation_id": 0}))
    pair.ask("old generation", "Heartbeat", 4, _as("m", generation | {"generation_id": 0}))
    pair.ask("stable", "Heartbeat", 4, _as("m", generation))
    _commit(pair, group, topic, "stable")
    for at in versions("DescribeGroups"):
        pair.ask("stable", "DescribeGroups", at, {"groups": [group, "unknown", ""]})
    pair.ask(
        "operations",
        "DescribeGroups",
        5,
        {"groups": [group], "include_authorized_operations": True},
    )
    for at in versions("ListGroups"):
        for label, states in (("all", []), ("stable", ["stable"]), ("none", ["Dead", "x"])):
            pair.ask(label, "ListGroups", at, {"states_filter": states if at >= 4 else []})
    for kind in ("classic", "Consumer", "x"):
        pair.ask(kind, "ListGroups", 5, {"types_filter": [kind]})
    for at in versions("DeleteGroups"):
        pair.ask("with members", "DeleteGroups", at, {"groups_names": [group, "unknown", ""]})
    rows = [{"name": name, "partitions": [{"partition_index": 0}]} for name in (topic,)]
    pair.ask("of a member", "OffsetDelete", 0, {"group_id": group, "topics": rows})
    other = {"protocols": [{"name": "other", "metadata": b""}]}
    pair.ask("other protocol", "JoinGroup", version, _join(group, **other), on="second")
    other_type = {"protocol_type": "connect"}
    pair.ask("other type", "JoinGroup", version, _join(group, **other_type), on="second")

    def leave(side: Side) -> Body:
        mine = side.kept["m"]
        return {"group_id": group, "member_id": mine, "members": [{"member_id": mine}]}

    pair.ask("leaves", "LeaveGroup", version % 6, leave)
    pair.ask("empty", "Heartbeat", 4, _as("m", generation))
    pair.ask("empty", "DescribeGroups", 5, {"groups": [group]})
    _commit(pair, group, topic, "empty")
    alone = {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "retention_time_ms": -1,
        "topics": [{"name": topic, "partitions": [{"partition_index": 0, "committed_offset": 1}]}],
    }
    pair.ask("alone", "OffsetCommit", 8, alone)
    pair.ask("empty", "DeleteGroups", 2, {"groups_names": [group]})
    pair.ask("deleted", "DescribeGroups", 5, {"groups": [group]})


def _commit(pair: Pair, group: str, topic: str, label: str) -> None:
    partition = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
    for generation_id in (1, 2, -1):
        body = {
            "group_id": group,
            "generation_id_or_member_epoch": generation_id,
            "retention_time_ms": -1,
            "topics": [{"name": topic, "partitions": [partition]}],
        }
        pair.ask(f"{label} in {generation_id}", "OffsetCommit", 8, _as("m", body))
        pair.ask(f"{label} in {generation_id} alone", "OffsetCommit", 8, body | {"member_id": ""})


def static_members(pair: Pair) -> None:
    """A static member returns, is fenced, and is removed by its instance id."""
    found(pair, "g")
    for version in versions("JoinGroup")[5:]:
        group = pair.name(f"static-{version}")
        body = _join(group, group_instance_id="i")
        _keep(pair, pair.ask("first life", "JoinGroup", version, body), "old")
        generation = {"group_id": group, "generation_id": 1, "group_instance_id": "i"}

        def sync(side: Side, generation: Body = generation) -> Body:
            mine = {"member_id": side.kept["old"], "assignment": b"mine"}
            named = {"protocol_type": "consumer", "protocol_name": "range"}
            return generation | named | {"member_id": side.kept["old"], "assignments": [mine]}

        pair.ask("first life", "SyncGroup", 5, sync)
        _keep(pair, pair.ask("second life", "JoinGroup", version, body), "new")
        pair.ask("second life", "DescribeGroups", 5, {"groups": [group]})
        pair.ask("fenced", "Heartbeat", 4, _as("old", generation))
        pair.ask("second life", "Heartbeat", 4, _as("new", generation))
        pair.ask(
            "without instance",
            "Heartbeat",
            4,
            _as("new", {**generation, "group_instance_id": None}),
        )
        fenced = _join(group, group_instance_id="i")
        pair.ask("fenced", "JoinGroup", version, _as("old", fenced))
        members = [{"member_id": "", "group_instance_id": name} for name in ("i", "j")]
        removed = {"group_id": group, "members": members}
        pair.ask("removed", "LeaveGroup", 5, removed)
        pair.ask("removed", "DescribeGroups", 5, {"groups": [group]})


def consumer_protocol(pair: Pair) -> None:
    """The protocol of KIP-848, which a cluster with znodes does not have."""
    for body in (
        {"group_id": "g", "member_id": "", "member_epoch": 0, "subscribed_topic_names": ["t"]},
        {"group_id": "", "member_id": "m", "member_epoch": -1},
    ):
        pair.ask("refused", "ConsumerGroupHeartbeat", 0, body)
    for groups in ([], ["g"], ["g", "", "g"]):
        pair.ask("refused", "ConsumerGroupDescribe", 0, {"group_ids": groups})


def features(pair: Pair) -> None:
    """Updates of features, of which a cluster with znodes has none."""
    rows: list[Body] = [
        {"feature": name, "max_version_level": level, "allow_downgrade": kind != 1}
        | {"upgrade_type": kind}
        for name in ("metadata.version", "")
        for level in (19, 0, -3)
        for kind in (0, 1, 2, 3, 9)
    ]
    for version in range(2):
        for row in rows:
            pair.ask("one", "UpdateFeatures", version, {"feature_updates": [row]})
        several = [{"feature": name, "max_version_level": 1, "upgrade_type": 1} for name in "aba"]
        pair.ask("several", "UpdateFeatures", version, {"feature_updates": several})
        pair.ask("none", "UpdateFeatures", version, {"feature_updates": []})


CASES = {
    "groups.strangers": strangers,
    "groups.consumer_protocol": consumer_protocol,
    "features": features,
    "groups.offsets": offsets,
    "groups.lives": lives,
    "groups.static_members": static_members,
}
