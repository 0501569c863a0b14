"""Settings as they are told: sources, keys, resources that are not here."""

from __future__ import annotations

from typing import Any

import pytest

from engine.config.settings import BrokerSettings
from engine.hash_order import in_hash_order
from engine.kafka_errors import INVALID_REQUEST_DETAIL
from engine.wire.structs import message_class
from tests.unit.api.asking import ask
from tests.unit.api.configuring import BROKER, CLIENT_METRICS, LOGGER, STATIC, TOPIC, Stage

REQUEST = message_class("DescribeConfigsRequest")


def describe(
    stage: Stage,
    kind: int,
    name: str,
    *,
    version: int = 4,
    keys: list[str] | None = None,
    **more: Any,
) -> Any:
    resource = REQUEST.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=keys
    )
    reply = ask(stage.describe, "DescribeConfigs", version, resources=[resource], **more)
    (result,) = reply.results
    assert (kind, name) == (result.resource_type, result.resource_name)
    return result


def values(result: Any) -> dict[str, tuple[str | None, int]]:
    return {each.name: (each.value, each.config_source) for each in result.configs}


@pytest.mark.parametrize("version", range(1, 5))
def test_a_topics_own_settings_come_from_its_node(version: int) -> None:
    stage = Stage()
    stage.put("topics/clicks", {"retention.ms": "1000"})
    result = describe(stage, TOPIC, "clicks", version=version)
    assert (0, "") == (result.error_code, result.error_message)
    assert ("1000", 1) == values(result)["retention.ms"]
    assert ("delete", 5) == values(result)["cleanup.policy"]
    assert 36 == len(result.configs)
    assert [] == result.configs[0].synonyms


def test_version_0_never_marks_a_default() -> None:
    stage = Stage()
    stage.put("topics/clicks", {"retention.ms": "1000"})
    entries = describe(stage, TOPIC, "clicks", version=0).configs
    assert {False} == {each.is_default for each in entries}


def test_a_topic_without_a_node_has_defaults() -> None:
    assert {5} == {source for _, source in values(describe(Stage(), TOPIC, "clicks")).values()}


def test_keys_are_chosen_and_no_keys_are_all() -> None:
    stage = Stage()
    keys = ["retention.ms", "no.such.key"]
    assert {"retention.ms"} == set(values(describe(stage, TOPIC, "clicks", keys=keys)))
    assert 36 == len(describe(stage, TOPIC, "clicks", keys=[]).configs)


def test_keys_come_in_the_order_of_kafkas_hash_map() -> None:
    first = ["compression.type", "remote.log.delete.on.disable"]
    told = [each.name for each in describe(Stage(), TOPIC, "clicks").configs]
    assert first == told[:2]
    chosen = describe(Stage(), TOPIC, "clicks", keys=["retention.ms", "flush.ms"]).configs
    assert in_hash_order(["flush.ms", "retention.ms"]) == [each.name for each in chosen]


def test_synonyms_are_listed_when_requested() -> None:
    stage = Stage()
    stage.settings = BrokerSettings(STATIC, {"log.retention.ms": "7"})
    stage.put("topics/clicks", {"retention.ms": "1000"})
    (entry,) = describe(
        stage, TOPIC, "clicks", keys=["retention.ms"], include_synonyms=True
    ).configs
    assert [("retention.ms", "1000", 1), ("log.retention.ms", "7", 2)] == [
        (each.name, each.value, each.source) for each in entry.synonyms
    ][:2]


def documentation(stage: Stage, kind: int, name: str, **more: Any) -> dict[str, str | None]:
    return {each.name: each.documentation for each in describe(stage, kind, name, **more).configs}


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize(("kind", "name", "count"), [(TOPIC, "clicks", 36), (BROKER, "1", 314)])
def test_every_key_is_documented_where_it_is_requested(
    kind: int, name: str, count: int, version: int
) -> None:
    found = documentation(Stage(), kind, name, version=version, include_documentation=True)
    assert count == len(found)
    assert [] == [key for key, text in found.items() if not text or not text.endswith(".")]


@pytest.mark.parametrize(("kind", "name"), [(TOPIC, "clicks"), (BROKER, "1")])
def test_documentation_is_null_where_it_is_not_requested(kind: int, name: str) -> None:
    assert {None} == set(documentation(Stage(), kind, name).values())


def test_plug_ins_listeners_and_throttles_have_no_documentation() -> None:
    """As a real broker answered."""
    dynamic = {
        "foo.bar": "baz",
        "listener.name.x.ssl.keystore.type": "PEM",
        "leader.replication.throttled.rate": "1000",
    }
    stage = Stage()
    stage.settings = BrokerSettings(STATIC, dynamic, {"foo.bar": "1", "log.retention.ms": "7"})
    found = documentation(stage, BROKER, "1", include_documentation=True)
    assert set(dynamic) == {key for key, text in found.items() if text is None}
    of_all = documentation(stage, BROKER, "", include_documentation=True)
    assert {"foo.bar"} == {key for key, text in of_all.items() if text is None}


def test_loggers_have_an_empty_documentation() -> None:
    for is_requested in (True, False):
        found = documentation(Stage(), LOGGER, "1", include_documentation=is_requested)
        assert {"root": "", "kafka.a": ""} == found


def test_a_broker_describes_itself_and_what_all_have() -> None:
    stage = Stage()
    stage.settings = BrokerSettings(STATIC, {"log.cleaner.threads": "2"}, {"log.retention.ms": "7"})
    own = describe(stage, BROKER, "1")
    assert ("2", 2) == values(own)["log.cleaner.threads"]
    assert ("7", 3) == values(own)["log.retention.ms"]
    assert ("8", 4) == values(own)["num.io.threads"]
    read_only = {each.name for each in own.configs if each.read_only}
    assert "broker.id" in read_only
    assert "log.cleaner.threads" not in read_only
    assert {"log.retention.ms": ("7", 3)} == values(describe(stage, BROKER, ""))


def test_a_password_is_not_printed() -> None:
    stage = Stage()
    stage.settings = BrokerSettings({**STATIC, "ssl.key.password": "secret"})
    (entry,) = describe(
        stage, BROKER, "1", keys=["ssl.key.password"], include_synonyms=True
    ).configs
    assert (None, True) == (entry.value, entry.is_sensitive)
    assert [None] == [each.value for each in entry.synonyms]


def test_loggers_are_described_with_their_effective_level() -> None:
    stage = Stage()
    result = describe(stage, LOGGER, "1")
    assert {"root": ("INFO", 6), "kafka.a": ("INFO", 6)} == values(result)
    assert ["kafka.a"] == [e.name for e in describe(stage, LOGGER, "1", keys=["kafka.a"]).configs]


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "ghost", 3),
        (TOPIC, "", 17),
        (TOPIC, "no/good", 17),
        (BROKER, "2", 42),
        (BROKER, "one", 42),
        (BROKER, "9" * 5000, 42),
        (LOGGER, "", 42),
        (LOGGER, "2", 42),
        (CLIENT_METRICS, "m", 42),
        (CLIENT_METRICS, "", 42),
    ],
)
def test_resources_that_are_not_here_are_refused(kind: int, name: str, code: int) -> None:
    result = describe(Stage(), kind, name)
    assert code == result.error_code
    assert bool(result.error_message) == (code != 3)
    assert [] == result.configs


def test_invalid_names_of_topics_are_refused_in_kafka_s_words() -> None:
    assert describe(Stage(), TOPIC, "a/b").error_message == (
        "Topic name is invalid: 'a/b' contains one or more characters other than "
        "ASCII alphanumerics, '.', '_' and '-'"
    )


def test_an_unknown_type_fails_all_resources() -> None:
    stage = Stage()
    resources = [
        REQUEST.DescribeConfigsResource(resource_type=kind, resource_name="clicks")
        for kind in (TOPIC, 99)
    ]
    reply = ask(stage.describe, "DescribeConfigs", 4, resources=resources)
    assert [42, 42] == [each.error_code for each in reply.results]
    assert {INVALID_REQUEST_DETAIL} == {each.error_message for each in reply.results}


def test_a_damaged_node_fails_its_topic_alone() -> None:
    stage = Stage()
    stage.do(stage.client.create("/config/topics/clicks", b"no json"))
    stage.put("topics/orders", {"retention.ms": "soon"})
    names = ("clicks", "orders", "orphans")
    resources = [
        REQUEST.DescribeConfigsResource(resource_type=TOPIC, resource_name=name) for name in names
    ]
    reply = ask(stage.describe, "DescribeConfigs", 4, resources=resources)
    assert [-1, -1, 0] == [each.error_code for each in reply.results]
