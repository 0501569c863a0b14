"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs."""

from __future__ import annotations

from typing import Any

from tests.compat.wire.pair import Pair, versions

Body = dict[str, Any]
#: Types of resources.
UNKNOWN, TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 0, 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


def _resource(kind: int, name: str, **more: Any) -> Body:
    return {"resource_type": kind, "resource_name": name} | more


def describe(pair: Pair) -> None:
    """All kinds of resources, filters, synonyms."""
    name = pair.topic("d", configs={"retention.ms": "5000", "cleanup.policy": "compact"})
    resources = {
        "topic": _resource(TOPIC, name),
        "unknown topic": _resource(TOPIC, pair.name("gone")),
        "bad topic": _resource(TOPIC, "a/b"),
        "empty topic": _resource(TOPIC, ""),
        "broker": _resource(BROKER, "1"),
        "default broker": _resource(BROKER, ""),
        "other broker": _resource(BROKER, "7"),
        "broker no number": _resource(BROKER, "x"),
        "negative broker": _resource(BROKER, "-1"),
        "other loggers": _resource(LOGGER, "7"),
        "no loggers": _resource(LOGGER, ""),
        "loggers no number": _resource(LOGGER, "x"),
        "unknown type": _resource(UNKNOWN, "x"),
        "type 1": _resource(1, "x"),
        "type 3": _resource(3, "x"),
        "type 127": _resource(127, "x"),
        "metrics": _resource(CLIENT_METRICS, "x"),
        "no metrics": _resource(CLIENT_METRICS, ""),
        "group": _resource(GROUP, "g"),
        "no group": _resource(GROUP, ""),
    }
    of_root = _resource(LOGGER, "1", configuration_keys=["root"])
    filters = {
        "all": None,
        "none": [],
        "one": ["retention.ms"],
        "two": ["cleanup.policy", "retention.ms"],
        "unknown": ["no.such.key"],
        "twice": ["retention.ms", "retention.ms"],
        "of broker": ["log.retention.ms", "advertised.listeners", "ssl.keystore.password"],
    }
    for version in versions("DescribeConfigs"):
        for what, resource in resources.items():
            for filter_name, keys in filters.items():
                for synonyms in (True, False):
                    sent = {
                        "resources": [resource | {"configuration_keys": keys}],
                        "include_synonyms": synonyms,
                    }
                    label = f"{what} {filter_name} {synonyms}"
                    pair.ask(label, "DescribeConfigs", version, sent)
        one = _resource(TOPIC, name, configuration_keys=["retention.ms"])
        other = _resource(BROKER, "1", configuration_keys=["log.retention.ms"])
        for what, several in {
            "none": [],
            "twice": [one, one],
            "topic and broker": [one, other],
            "two brokers": [other, _resource(BROKER, "7")],
        }.items():
            pair.ask(what, "DescribeConfigs", version, {"resources": several})
        documented = ("topic", "broker", "default broker", "unknown topic")
        for what, one in [(each, resources[each]) for each in documented] + [("root", of_root)]:
            for requested in (True, False):
                sent = {"resources": [one], "include_documentation": requested}
                label = f"{what} documentation {requested}"
                pair.ask(label, "DescribeConfigs", version, sent)


def _pairs(*found: tuple[str, str | None]) -> list[Body]:
    return [{"name": key, "value": value} for key, value in found]


_TOPIC_CHANGES: dict[str, tuple[tuple[str, str | None], ...]] = {
    "one": (("retention.ms", "1000"),),
    "two": (("retention.ms", "1000"), ("max.message.bytes", "5000")),
    "nothing": (),
    "the same twice": (("retention.ms", "1"), ("retention.ms", "2")),
    "null": (("retention.ms", None),),
    "two nulls": (("retention.ms", None), ("max.message.bytes", None)),
    "empty": (("retention.ms", ""),),
    "bad number": (("retention.ms", "x"),),
    "below": (("retention.ms", "-5"),),
    "unknown key": (("no.such.key", "1"),),
    "unknown and good": (("no.such.key", "1"), ("retention.ms", "4000")),
    "empty key": (("", "1"),),
    "a broker's key": (("log.retention.ms", "1000"),),
    "bad policy": (("cleanup.policy", "burn"),),
    "bad list": (("cleanup.policy", "delete,burn"),),
    "empty list": (("cleanup.policy", ""),),
    "list": (("cleanup.policy", "compact,delete"),),
    "throttled": (("leader.replication.throttled.replicas", "0:1"),),
    "empty elements": (("leader.replication.throttled.replicas", ",0:1,,"),),
    "min isr": (("min.insync.replicas", "3"),),
    "lags": (("min.compaction.lag.ms", "10"), ("max.compaction.lag.ms", "5")),
    "remote": (("remote.storage.enable", "true"),),
}
_BROKER_CHANGES: dict[str, tuple[tuple[str, str | None], ...]] = {
    "one": (("log.retention.ms", "7200000"),),
    "two": (("log.retention.ms", "7200000"), ("log.segment.bytes", "50000000")),
    "bad number": (("log.retention.ms", "x"),),
    "below": (("log.segment.bytes", "1"),),
    "read-only": (("broker.id", "5"),),
    "read-only and good": (("log.dirs", "/x"), ("log.retention.ms", "5000000")),
    "unknown key": (("no.such.key", "1"),),
    "custom key": (("listener.name.x.no.such", "1"),),
    "of one broker alone": (("ssl.keystore.location", "/x"),),
    "listeners": (("listeners", "PLAINTEXT://:1"),),
    "threads": (("num.io.threads", "9"),),
    "threads too many": (("num.io.threads", "100"),),
    "threads 0": (("num.io.threads", "0"),),
    "topic's key": (("retention.ms", "1000"),),
    "password": (("ssl.truststore.password", "x"),),
    "listener's password": (("listener.name.plaintext.ssl.keystore.password", "x"),),
    "plug-in's password": (("plugin.ssl.key.password", "x"),),
    "password and good": (("sasl.jaas.config", "x"), ("log.retention.ms", "6000000")),
    "fixed password": (("zookeeper.ssl.keystore.password", "x"),),
    "token's key": (("listener.name.x.delegation.token.secret.key", "x"),),
    "null": (("log.retention.ms", None),),
    "empty": (("log.retention.ms", ""),),
    "nothing": (),
    "hours": (("log.retention.hours", "5"),),
    "twice": (("log.retention.ms", "1"), ("log.retention.ms", "2")),
    "max bytes": (("message.max.bytes", "1000012"),),
    "connections": (("max.connections", "1000000"),),
    "throttle": (("leader.replication.throttled.rate", "1000"),),
    "reporters": (("metric.reporters", "org.no.Such"),),
    "unclean": (("unclean.leader.election.enable", "false"),),
    "compression": (("compression.type", "burn"),),
    "local above": (("log.local.retention.ms", "5"), ("log.retention.ms", "4")),
    "local without end": (("log.local.retention.bytes", "-1"), ("log.retention.bytes", "4")),
    "another protocol": (("listener.security.protocol.map", "PLAINTEXT:SASL_PLAINTEXT"),),
}


def _state(pair: Pair, what: str, resource: Body, keys: list[str] | None = None) -> None:
    pair.settle(0.12)
    sent = {"resources": [resource | {"configuration_keys": keys}], "include_synonyms": True}
    pair.ask(f"after {what}", "DescribeConfigs", 4, sent)


_BROKER_KEYS = ["log.retention.ms", "log.segment.bytes", "num.io.threads", "log.retention.hours"]


def alter(pair: Pair) -> None:
    """Replacing all settings of a resource."""
    for version in versions("AlterConfigs"):
        name = pair.topic(f"a{version}", configs={"flush.ms": "7000"})
        for what, changes in _TOPIC_CHANGES.items():
            for only in (True, False):
                one = _resource(TOPIC, name, configs=_pairs(*changes))
                sent = {"resources": [one], "validate_only": only}
                pair.ask(f"topic {what} only={only}", "AlterConfigs", version, sent)
            _state(pair, what, _resource(TOPIC, name))
        for broker in ("1", ""):
            for what, changes in _BROKER_CHANGES.items():
                for only in (True, False):
                    one = _resource(BROKER, broker, configs=_pairs(*changes))
                    sent = {"resources": [one], "validate_only": only}
                    label = f"broker {broker!r} {what} only={only}"
                    pair.ask(label, "AlterConfigs", version, sent)
                _state(pair, f"{broker!r} {what}", _resource(BROKER, broker), _BROKER_KEYS)
            empty = {"resources": [_resource(BROKER, broker, configs=[])]}
            pair.ask(f"broker {broker!r} cleared", "AlterConfigs", version, empty)
            _state(pair, f"{broker!r} cleared", _resource(BROKER, broker), _BROKER_KEYS)
        _other_resources(pair, "AlterConfigs", version, name)


def _other_resources(pair: Pair, api_name: str, version: int, name: str) -> None:
    change = _pairs(("retention.ms", "3000"))
    for what, several in {
        "none": [],
        "unknown topic": [_resource(TOPIC, pair.name("gone"), configs=change)],
        "bad topic": [_resource(TOPIC, "a/b", configs=change)],
        "empty topic": [_resource(TOPIC, "", configs=change)],
        "other broker": [_resource(BROKER, "7", configs=change)],
        "no number": [_resource(BROKER, "x", configs=change)],
        "unknown type": [_resource(UNKNOWN, "x", configs=change)],
        "type 3": [_resource(3, "x", configs=change)],
        "type 127": [_resource(127, "x", configs=change)],
        "group": [_resource(GROUP, "g", configs=change)],
        "metrics": [_resource(CLIENT_METRICS, "m", configs=_pairs(("interval.ms", "1000")))],
        "topic twice": [_resource(TOPIC, name, configs=change)] * 2,
        "topic twice and another": [
            _resource(TOPIC, name, configs=change),
            _resource(TOPIC, pair.name("gone"), configs=change),
            _resource(TOPIC, name, configs=change),
        ],
        "loggers of another": [_resource(LOGGER, "7", configs=_pairs(("root", "INFO")))],
        "loggers of none": [_resource(LOGGER, "", configs=_pairs(("root", "INFO")))],
        "loggers no number": [_resource(LOGGER, "x", configs=_pairs(("root", "INFO")))],
    }.items():
        for only in (True, False):
            sent = {"resources": several, "validate_only": only}
            pair.ask(f"{what} only={only}", api_name, version, sent)


def _operation(key: str, operation: int, value: str | None) -> Body:
    return {"name": key, "config_operation": operation, "value": value}


def incremental(pair: Pair) -> None:
    """Single settings: all operations, on lists and on others."""
    for version in versions("IncrementalAlterConfigs"):
        name = pair.topic(f"i{version}", configs={"flush.ms": "7000"})
        cases: dict[str, list[Body]] = {}
        for what, changes in _TOPIC_CHANGES.items():
            for operation in (SET, DELETE, APPEND, SUBTRACT):
                found = [_operation(key, operation, value) for key, value in changes]
                cases[f"{what} operation {operation}"] = found
        policy = "cleanup.policy"
        throttled = "follower.replication.throttled.replicas"
        cases |= {
            "operation 4": [_operation("retention.ms", 4, "1")],
            "operation -1": [_operation("retention.ms", -1, "1")],
            "set and delete": [
                _operation("retention.ms", SET, "1"),
                _operation("retention.ms", DELETE, None),
            ],
            "delete with value": [_operation("retention.ms", DELETE, "5")],
            "append compact": [_operation(policy, APPEND, "compact")],
            "append again": [_operation(policy, APPEND, "compact")],
            "subtract delete": [_operation(policy, SUBTRACT, "delete")],
            "subtract absent": [_operation(policy, SUBTRACT, "burn")],
            "subtract last": [_operation(policy, SUBTRACT, "compact")],
            "delete policy": [_operation(policy, DELETE, None)],
            "append throttled": [_operation(throttled, APPEND, "0:1,1:1")],
            "append throttled more": [_operation(throttled, APPEND, "2:1")],
            "subtract throttled": [_operation(throttled, SUBTRACT, "0:1,2:1")],
            "append to star": [_operation(throttled, SET, "*")],
            "append to star 2": [_operation(throttled, APPEND, "0:1")],
            "append with comma": [_operation(policy, APPEND, ",compact")],
            "append with commas behind": [_operation(policy, APPEND, "compact,,")],
            "subtract with commas behind": [_operation(policy, SUBTRACT, "compact,,")],
            "append spaces": [_operation(policy, APPEND, " compact ")],
        }
        for what, found in cases.items():
            for only in (True, False):
                one = _resource(TOPIC, name, configs=found)
                sent = {"resources": [one], "validate_only": only}
                pair.ask(f"topic {what} only={only}", "IncrementalAlterConfigs", version, sent)
            _state(pair, what, _resource(TOPIC, name))
        for broker in ("1", ""):
            for what, changes in _BROKER_CHANGES.items():
                for operation in (SET, DELETE, APPEND):
                    found = [_operation(key, operation, value) for key, value in changes]
                    one = _resource(BROKER, broker, configs=found)
                    for only in (True, False):
                        sent = {"resources": [one], "validate_only": only}
                        label = f"broker {broker!r} {what} operation {operation} only={only}"
                        pair.ask(label, "IncrementalAlterConfigs", version, sent)
                    _state(pair, f"{broker!r} {what}", _resource(BROKER, broker), _BROKER_KEYS)
        _other_resources(pair, "IncrementalAlterConfigs", version, name)
        _loggers(pair, version)


def _loggers(pair: Pair, version: int) -> None:
    for what, found in {
        "set": [_operation("kafka.server.KafkaApis", SET, "WARN")],
        "set lower": [_operation("kafka.server.KafkaApis", SET, "warn")],
        "set bad": [_operation("kafka.server.KafkaApis", SET, "LOUD")],
        "set null": [_operation("kafka.server.KafkaApis", SET, None)],
        "set unknown": [_operation("no.such.logger", SET, "WARN")],
        "append": [_operation("kafka.server.KafkaApis", APPEND, "WARN")],
        "subtract": [_operation("kafka.server.KafkaApis", SUBTRACT, "WARN")],
        "delete": [_operation("kafka.server.KafkaApis", DELETE, None)],
        "delete root": [_operation("root", DELETE, None)],
        "operation 9": [_operation("root", 9, "INFO")],
        "nothing": [],
    }.items():
        sent = {"resources": [_resource(LOGGER, "1", configs=found)]}
        pair.ask(f"logger {what}", "IncrementalAlterConfigs", version, sent)


CASES = {
    "configs.describe": describe,
    "configs.alter": alter,
    "configs.incremental": incremental,
}
