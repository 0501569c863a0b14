"""All settings of a resource replaced."""

from __future__ import annotations

import pytest

from engine.wire.structs import message_class
from tests.unit.api.asking import ask
from tests.unit.api.configuring import BROKER, CLIENT_METRICS, LOGGER, TOPIC, Stage


def test_what_is_not_named_is_unset() -> None:
    stage = Stage()
    stage.put("topics/clicks", {"retention.ms": "1000"})
    assert (0, None) == stage.replace(TOPIC, "clicks", {"segment.ms": "5"})
    assert {"segment.ms": "5"} == stage.stored("topics/clicks")
    assert ["topics/clicks"] == stage.changes()
    assert (0, None) == stage.replace(TOPIC, "clicks", {})
    assert {} == stage.stored("topics/clicks")


@pytest.mark.parametrize("version", range(3))
def test_every_version_is_answered(version: int) -> None:
    request = message_class("AlterConfigsRequest")
    resource = request.AlterConfigsResource(
        resource_type=BROKER,
        resource_name="1",
        configs=[request.AlterableConfig(name="log.cleaner.threads", value="2")],
    )
    stage = Stage()
    reply = ask(stage.alter, "AlterConfigs", version, resources=[resource])
    (answer,) = reply.responses
    assert (0, None, BROKER, "1") == (
        answer.error_code,
        answer.error_message,
        answer.resource_type,
        answer.resource_name,
    )
    assert {"log.cleaner.threads": "2"} == stage.stored("brokers/1")


def test_validation_alone_writes_nothing() -> None:
    stage = Stage()
    assert (0, None) == stage.replace(TOPIC, "clicks", {"segment.ms": "5"}, validate_only=True)
    assert not stage.is_stored("topics/clicks")


@pytest.mark.parametrize(
    ("kind", "name", "config", "code"),
    [
        (TOPIC, "clicks", {"retention.ms": "soon"}, 40),
        (TOPIC, "clicks", {"retention.ms": None}, 42),
        (TOPIC, "ghost", {}, 3),
        (BROKER, "2", {}, 42),
        (BROKER, "1", {"broker.id": "7"}, 42),
        (LOGGER, "1", {"kafka.a": "INFO"}, 42),
        (CLIENT_METRICS, "m", {}, 42),
        (77, "m", {}, 42),
    ],
)
def test_what_is_refused_changes_nothing(
    kind: int, name: str, config: dict[str, str | None], code: int
) -> None:
    stage = Stage()
    assert code == stage.replace(kind, name, config)[0]
    assert [] == stage.changes()
