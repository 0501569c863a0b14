"""Refused settings in Kafka's words."""

from __future__ import annotations

import pytest

from engine.admin.config_message import config_message
from engine.config.settings import BrokerSettings
from engine.config.topic_config import check_topic_overrides
from engine.errors import ConfigError


def message_for(name: str, value: str) -> str:
    with pytest.raises(ConfigError) as error:
        check_topic_overrides({name: value}, BrokerSettings({}))
    return config_message(error.value)


# Printed by kafka-topics and kafka-configs of 3.9.1.
PRINTED = [
    ("cleanup.policy", "shred", "String must be one of: compact, delete"),
    ("min.insync.replicas", "0", "Value must be at least 1"),
    ("retention.ms", "abc", "Not a number of type LONG"),
    ("retention.ms", "soon", "Not a number of type LONG"),
]
# Said by LogConfig.validate of 3.9.1.
RULES = [
    (
        "compression.type",
        "zip",
        "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer",
    ),
    ("compression.gzip.level", "11", "Value must be between 1 and 9 or equal to -1"),
    ("compression.zstd.level", "100", "Value must be no more than 22"),
    ("message.format.version", "x", "Version x is not a valid version"),
    ("segment.bytes", "9999999999", "Not a number of type INT"),
    ("segment.bytes", "13", "Value must be at least 14"),
    ("min.cleanable.dirty.ratio", "high", "Not a number of type DOUBLE"),
    ("preallocate", "yes", "Expected value to be either true or false"),
    ("message.timestamp.type", "Now", "String must be one of: CreateTime, LogAppendTime"),
]


@pytest.mark.parametrize(("name", "value", "why"), PRINTED + RULES)
def test_a_value_is_refused_in_kafkas_words(name: str, value: str, why: str) -> None:
    assert f"Invalid value {value} for configuration {name}: {why}" == message_for(name, value)


def test_an_unknown_name_has_a_message_of_its_own() -> None:
    assert "Unknown topic config name: no.such.key" == message_for("no.such.key", "1")


@pytest.mark.parametrize(
    ("name", "value", "shown", "why"),
    [
        ("min.cleanable.dirty.ratio", "7", "7.0", "Value must be no more than 1"),
        ("min.cleanable.dirty.ratio", "-0.5", "-0.5", "Value must be at least 0"),
        ("min.cleanable.dirty.ratio", "-1d", "-1.0", "Value must be at least 0"),
        ("min.cleanable.dirty.ratio", "1_0", "1_0", "Not a number of type DOUBLE"),
        ("min.cleanable.dirty.ratio", "nan", "nan", "Not a number of type DOUBLE"),
        ("min.cleanable.dirty.ratio", "1e400", "1e400", "Not a number of type DOUBLE"),
        ("segment.bytes", " 13 ", "13", "Value must be at least 14"),
        ("segment.bytes", "2147483648", "2147483648", "Not a number of type INT"),
        ("segment.bytes", "-2147483648", "-2147483648", "Value must be at least 14"),
        ("segment.bytes", "-2147483649", "-2147483649", "Not a number of type INT"),
        (
            "compression.type",
            " zip ",
            "zip",
            "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer",
        ),
        ("cleanup.policy", "compact,shred", "shred", "String must be one of: compact, delete"),
        (
            "leader.replication.throttled.replicas",
            "x",
            "[x]",
            "leader.replication.throttled.replicas must be the literal '*' or a list of replicas "
            "in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],...",
        ),
    ],
)
def test_values_are_shown_as_java_shows_them(name: str, value: str, shown: str, why: str) -> None:
    assert f"Invalid value {shown} for configuration {name}: {why}" == message_for(name, value)


def test_tiered_storage_is_refused_as_by_a_broker_that_has_it_disabled() -> None:
    assert message_for("remote.storage.enable", "true") == (
        "Tiered Storage functionality is disabled in the broker. "
        "Topic cannot be configured with remote log storage."
    )


def test_settings_that_contradict_each_other_are_reported_together() -> None:
    overrides = {"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"}
    with pytest.raises(ConfigError) as error:
        check_topic_overrides(overrides, BrokerSettings({}))
    assert (
        "conflict topic config setting min.compaction.lag.ms (5) > max.compaction.lag.ms (4)"
    ) == config_message(error.value)
