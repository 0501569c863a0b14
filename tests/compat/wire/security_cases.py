"""Access rules: made, described and removed, and what they decide.

Where no authorizer is set all are refused. What rules decide shows on brokers with
`authorizer.class.name` and `allow.everyone.if.no.acl.found=true`, without super users.
"""

from __future__ import annotations

import time
from typing import Any

from tests.compat.wire.pair import Body, Pair, versions

_RULE: Body = {
    "resource_type": 2,
    "resource_pattern_type": 3,
    "principal": "User:a",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}
_ALL: Body = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "principal_filter": None,
    "host_filter": None,
    "pattern_type_filter": 1,
    "operation": 1,
    "permission_type": 1,
}
#: What a rule may not be, or only just.
_ODD_RULES: tuple[Body, ...] = (
    {},
    {"resource_type": 1},
    {"resource_type": 99},
    {"resource_pattern_type": 1},
    {"resource_pattern_type": 2},
    {"resource_pattern_type": 99},
    {"operation": 1},
    {"operation": 99},
    {"permission_type": 1},
    {"permission_type": 99},
    {"resource_name": ""},
    {"resource_name": "a/b"},
    {"resource_name": "."},
    {"resource_name": "a\0b"},
    {"resource_name": "*"},
    {"resource_name": "*", "resource_pattern_type": 4},
    {"resource_type": 4},
    {"resource_type": 4, "resource_name": "kafka-cluster", "operation": 9},
    {"principal": "alice"},
    {"principal": ""},
    {"principal": "User:"},
    {"principal": ":x"},
    {"principal": "User:a:b"},
    {"host": ""},
    {"host": "localhost"},
    {"operation": 9},
    {"operation": 13},
    {"resource_type": 7, "operation": 14},
    {"resource_type": 6, "operation": 8},
)
_FILTERS: tuple[Body, ...] = (
    {},
    {"resource_type_filter": 2},
    {"resource_type_filter": 99},
    {"pattern_type_filter": 2},
    {"pattern_type_filter": 2, "resource_name_filter": "prefix"},
    {"pattern_type_filter": 3, "resource_name_filter": "prefix"},
    {"pattern_type_filter": 4, "resource_name_filter": "pre"},
    {"pattern_type_filter": 99},
    {"operation": 99},
    {"permission_type": 2},
    {"principal_filter": "User:a"},
    {"principal_filter": "nobody"},
    {"host_filter": "*"},
    {"resource_name_filter": ""},
    {"resource_name_filter": "a/b"},
)


def rules(pair: Pair) -> None:
    """Make, describe and remove rules."""
    for version in versions("CreateAcls"):
        for change in _ODD_RULES:
            rule = _RULE | {"resource_name": pair.name("t")} | change
            pair.ask(f"rule {change}", "CreateAcls", version, {"creations": [rule]})
        named = _RULE | {"resource_name": pair.name("t")}
        several = [named, named | {"principal": "x"}, named | {"resource_name": ""}, named]
        pair.ask("several rules", "CreateAcls", version, {"creations": several})
        prefixed = _RULE | {"resource_name": "pre", "resource_pattern_type": 4}
        pair.ask("prefixed", "CreateAcls", version, {"creations": [prefixed]})
        for change in _FILTERS:
            pair.ask(f"filter {change}", "DescribeAcls", version, _ALL | change)
        for change in (*_FILTERS[1:], {}):
            pair.ask(f"remove {change}", "DeleteAcls", version, {"filters": [_ALL | change]})
            pair.ask(f"after {change}", "DescribeAcls", version, _ALL)
        pair.ask("prefixed again", "CreateAcls", version, {"creations": [prefixed, named]})
        filters = [_ALL | {"principal_filter": "User:a", "operation": 3}, _ALL]
        pair.ask("by two filters", "DeleteAcls", version, {"filters": filters})


#: Rules about topics of a prefix: a name's end, and what differs from a rule of everybody.
_DECISIONS: tuple[tuple[str, Body], ...] = (
    ("nobody", {"principal": "User:somebody"}),
    ("read", {"operation": 3}),
    ("write", {"operation": 4}),
    ("describe", {"operation": 8}),
    ("alterconfigs", {"operation": 11}),
    ("all", {"operation": 2}),
    ("denyread", {"operation": 3, "permission_type": 2}),
    ("denyall", {"operation": 2, "permission_type": 2}),
    ("here", {"host": "127.0.0.1", "operation": 6}),
    ("there", {"host": "10.0.0.1", "operation": 6}),
    ("me", {"principal": "User:ANONYMOUS", "operation": 7}),
    ("group", {"principal": "Group:ANONYMOUS", "operation": 7}),
)


def decisions(pair: Pair) -> None:
    """What may be done to topics, groups and the cluster, under changing rules."""
    for suffix in (*(name for name, _ in _DECISIONS), "free", "mixed"):
        pair.topic(suffix)
    base = _RULE | {"principal": "User:*"}
    creations = [base | {"resource_name": pair.name(name)} | rule for name, rule in _DECISIONS]
    mixed = base | {"resource_name": pair.name("mixed"), "operation": 2}
    creations += [mixed, mixed | {"permission_type": 2, "operation": 4}]
    _create(pair, creations)
    _look(pair, "literal")
    prefixed = base | {"resource_name": pair.name("")[:-1], "resource_pattern_type": 4}
    _create(pair, [prefixed | {"operation": 10}])
    _look(pair, "prefixed")
    _create(pair, [prefixed | {"operation": 8, "permission_type": 2}])
    _look(pair, "prefixed denial")
    _delete(pair, {"pattern_type_filter": 4})
    _create(pair, [base | {"resource_name": "*", "operation": 4, "permission_type": 2}])
    _look(pair, "wildcard denial")
    _create(pair, [base | {"resource_type": 3, "resource_name": "g", "operation": 3}])
    _look(pair, "group")
    _delete(pair, {"resource_type_filter": 2})
    _look(pair, "after all of topics")
    _delete(pair, {})


def _create(pair: Pair, creations: list[Body]) -> None:
    pair.ask("stage", "CreateAcls", 3, {"creations": creations})


def _delete(pair: Pair, change: Body) -> None:
    pair.ask("stage", "DeleteAcls", 3, {"filters": [_ALL | change]})
    time.sleep(0.2)


def _look(pair: Pair, label: str) -> None:
    names = [pair.name(name) for name, _ in _DECISIONS]
    names += [pair.name("free"), pair.name("mixed")]
    for name in names:
        suffix = name.removeprefix(pair.name(""))
        operations = {
            "topics": [{"name": name}],
            "allow_auto_topic_creation": False,
            "include_topic_authorized_operations": True,
            "include_cluster_authorized_operations": True,
        }
        pair.ask(f"{label} {suffix}", "Metadata", 9, operations)
        for api_name, version, body in _requests(name):
            pair.ask(f"{label} {suffix}", api_name, version, body)
    sent = {"transactional_id": None, "transaction_timeout_ms": 1000}
    for found in pair.ask(f"{label} some", "InitProducerId", 4, sent):
        assert not isinstance(found, str), found
    for group in ("g", "other"):
        asked = {"groups": [group], "include_authorized_operations": True}
        pair.ask(f"{label} {group}", "DescribeGroups", 5, asked)


def _requests(name: str) -> list[tuple[str, int, Any]]:
    offsets = [{"partition_index": 0, "timestamp": -1}]
    fetched = [{"partition": 0, "partition_max_bytes": 1000}]
    described = {"resource_type": 2, "resource_name": name, "configuration_keys": []}
    return [
        ("ListOffsets", 5, {"replica_id": -1, "topics": [{"name": name, "partitions": offsets}]}),
        ("Fetch", 11, {"max_wait_ms": 0, "topics": [{"topic": name, "partitions": fetched}]}),
        ("DescribeConfigs", 4, {"resources": [described]}),
        (
            "CreatePartitions",
            3,
            {"topics": [{"name": name, "count": 1, "assignments": None}], "timeout_ms": 1000},
        ),
    ]


CASES = {"security.rules": rules, "security.decisions": decisions}
