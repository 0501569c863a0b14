"""What a real 3.9.1 broker answered, from the settings it had (`describe_3_9_1.json`)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from engine.config.describe import (
    DescribedConfig,
    describe_broker,
    describe_broker_defaults,
    describe_topic,
)
from engine.config.settings import BrokerSettings, SettingSource


@cache
def real() -> dict[str, Any]:
    """Return the settings of the broker, and its answers: name, value, read-only, source,
    sensitive, synonyms, type."""
    return json.loads((Path(__file__).parent / "describe_3_9_1.json").read_text())  # type: ignore[no-any-return]


def settings() -> BrokerSettings:
    return BrokerSettings(real()["static"], real()["dynamic_broker"], real()["dynamic_default"])


def as_answered(entries: list[DescribedConfig]) -> list[list[object]]:
    return [
        [
            entry.name,
            entry.value,
            entry.is_read_only,
            entry.source.value,
            entry.is_sensitive,
            [[each.name, each.value, each.source.value] for each in entry.synonyms],
            entry.type,
        ]
        for entry in entries
    ]


def test_a_broker_answers_as_a_real_one() -> None:
    answered = as_answered(describe_broker(settings()))
    assert 317 == len(answered)
    for expected, got in zip(real()["broker"], answered, strict=True):
        assert expected == got


def test_the_defaults_of_brokers_are_answered_as_by_a_real_one() -> None:
    assert real()["default"] == as_answered(describe_broker_defaults(settings()))


@pytest.mark.parametrize("topic", ["t2", "t30"])
def test_a_topic_is_answered_as_by_a_real_broker(topic: str) -> None:
    answered = as_answered(describe_topic(settings(), real()["topic_configs"][topic]))
    for expected, got in zip(real()["topics"][topic], answered, strict=True):
        assert expected == got


def test_hours_alone_are_the_value_but_no_synonym() -> None:
    """As a broker without dynamic settings answered."""
    plain = BrokerSettings({"broker.id": "0"})
    [entry] = [each for each in describe_topic(plain, {}) if each.name == "retention.ms"]
    assert ("604800000", SettingSource.DEFAULT, ()) == (entry.value, entry.source, entry.synonyms)
    assert entry.is_default
    mine = describe_topic(plain, {"retention.ms": "5"})
    [entry] = [each for each in mine if each.name == "retention.ms"]
    assert [("retention.ms", "5", SettingSource.TOPIC)] == [tuple(each) for each in entry.synonyms]
    assert not entry.is_default


def test_a_value_is_printed_as_it_was_understood() -> None:
    static = {
        "broker.id": "0",
        "log.retention.bytes": " +0100 ",
        "auto.create.topics.enable": "TRUE",
    }
    found = {each.name: each for each in describe_broker(BrokerSettings(static))}
    assert "100" == found["log.retention.bytes"].value
    assert " +0100 " == found["log.retention.bytes"].synonyms[0].value
    assert "true" == found["auto.create.topics.enable"].value


def test_secrets_and_unknown_settings_are_never_printed() -> None:
    static = {"ssl.key.password": "hush", "plugin.secret": "hush"}
    dynamic = {"listener.name.x.plain.sasl.jaas.config": "hush"}
    found = describe_broker(BrokerSettings(static, dynamic, static))
    assert "hush" not in str(found)
    assert {"ssl.key.password", "plugin.secret", *dynamic} <= {
        each.name for each in found if each.is_sensitive and each.value is None
    }
