"""Where quotas lie, what changes make of them, and which ones a filter means."""

from __future__ import annotations

import math

import pytest

from engine.admin.config_errors import InvalidRequest, UnexpectedChange
from engine.admin.quota_entities import (
    Component,
    Entity,
    QuotaChange,
    QuotaFilter,
    UnknownEntityKind,
    apply_quota_changes,
    check_components,
    node_of,
    quotas_in,
)
from engine.config.key import ip_keys, quota_keys, scram_keys
from engine.errors import ApiError


@pytest.mark.parametrize(
    ("entity", "path"),
    [
        ({"user": "u"}, "users/u"),
        ({"user": None}, "users/<default>"),
        ({"user": "<default>"}, "users/%3Cdefault%3E"),
        ({"user": "a/b *"}, "users/a%2Fb%20%2A"),
        ({"user": "u", "client-id": None}, "users/u/clients/<default>"),
        ({"client-id": "c", "user": None}, "users/<default>/clients/c"),
        ({"client-id": "c"}, "clients/c"),
        ({"ip": "1.2.3.4"}, "ips/1.2.3.4"),
        ({"ip": None}, "ips/<default>"),
    ],
)
def test_an_entity_has_a_node(entity: Entity, path: str) -> None:
    assert path == node_of(entity, lambda host: host == "1.2.3.4").path


@pytest.mark.parametrize(
    ("entity", "reason"),
    [
        ({}, "Invalid empty client quota entity"),
        ({"group": "g"}, "Unhandled client quota entity type: group"),
        ({"client-id": ""}, "Empty client-id not supported"),
        ({"ip": "nowhere"}, "nowhere is not a valid IP or resolvable host."),
        (
            {"ip": None, "user": "u"},
            "Invalid quota entity combination, IP entity should not be used with user/client ID "
            "entity.",
        ),
    ],
)
def test_an_entity_that_cannot_be_is_refused(entity: Entity, reason: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        node_of(entity, lambda host: False)
    assert reason == refused.value.detail


def test_kinds_of_entities_take_different_settings() -> None:
    def keys(entity: Entity) -> set[str]:
        return set(node_of(entity, lambda host: True).keys)

    assert set(ip_keys()) == keys({"ip": "1.2.3.4"})
    assert set(quota_keys()) == keys({"client-id": "c"})
    assert {*quota_keys(), *scram_keys()} == keys({"user": "u"})


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("producer_byte_rate", 1000.0, "1000"),
        ("producer_byte_rate", 999.9999999, "1000"),
        ("producer_byte_rate", 1e18, "1000000000000000000"),
        ("producer_byte_rate", math.nan, "0"),
        ("request_percentage", 50.0, "50.0"),
        ("request_percentage", 1e7, "1.0E7"),
        ("request_percentage", 1e-5, "1.0E-5"),
        ("request_percentage", math.inf, "Infinity"),
        ("request_percentage", -math.inf, "-Infinity"),
        ("request_percentage", math.nan, "NaN"),
        ("controller_mutation_rate", -3.0, "-3.0"),
    ],
)
def test_values_are_written_as_java_prints_them(key: str, value: float, text: str) -> None:
    assert {key: text} == apply_quota_changes({}, [QuotaChange(key, value)], quota_keys())


@pytest.mark.parametrize("value", [1000.5, -1.0, 1e30, math.inf, -math.inf])
def test_rates_of_bytes_are_whole_numbers(value: float) -> None:
    with pytest.raises(InvalidRequest, match="must be a LONG value"):
        apply_quota_changes({}, [QuotaChange("producer_byte_rate", value)], quota_keys())


def test_changes_are_done_in_their_order() -> None:
    current = {"producer_byte_rate": "1", "consumer_byte_rate": "2"}
    changes = [
        QuotaChange("producer_byte_rate", None),
        QuotaChange("nonsense", None),
        QuotaChange("request_percentage", 1.0),
        QuotaChange("request_percentage", 2.0),
    ]
    assert {"consumer_byte_rate": "2", "request_percentage": "2.0"} == apply_quota_changes(
        current, changes, quota_keys()
    )
    with pytest.raises(InvalidRequest, match="Invalid configuration key nonsense"):
        apply_quota_changes(current, [QuotaChange("nonsense", 1.0)], quota_keys())
    with pytest.raises(UnexpectedChange):
        apply_quota_changes(current, [QuotaChange("SCRAM-SHA-256", 1.0)], scram_keys())


ENTITIES: tuple[Entity, ...] = (
    {"user": "u"},
    {"user": None},
    {"client-id": "c"},
    {"user": "u", "client-id": "c"},
    {"ip": "1.2.3.4"},
)
ANY_USER, DEFAULT_USER = Component("user", is_any=True), Component("user", is_any=False)
USER_U = Component("user", is_any=False, name="u")


@pytest.mark.parametrize(
    ("components", "is_strict", "meant"),
    [
        ([], True, []),
        ([], False, [0, 1, 2, 3, 4]),
        ([ANY_USER], True, [0, 1]),
        ([ANY_USER], False, [0, 1, 3]),
        ([DEFAULT_USER], False, [1]),
        ([USER_U], True, [0]),
        ([USER_U, Component("client-id", is_any=True)], True, [3]),
        ([Component("ip", is_any=True)], True, [4]),
    ],
)
def test_a_filter_means_entities(
    components: list[Component], is_strict: bool, meant: list[int]
) -> None:
    wanted = QuotaFilter(components, is_strict)
    assert meant == [at for at, entity in enumerate(ENTITIES) if wanted.matches(entity)]


@pytest.mark.parametrize(
    ("kinds", "error", "reason"),
    [
        (["user", "user"], InvalidRequest, "Duplicate user filter component entity type"),
        (
            ["client-id", "client-id"],
            InvalidRequest,
            "Duplicate client filter component entity type",
        ),
        ([""], InvalidRequest, "Unexpected empty filter component entity type"),
        (["group"], UnknownEntityKind, "Custom entity type 'group' not supported"),
        (
            ["ip", "user"],
            InvalidRequest,
            "Invalid entity filter component combination, IP filter component should not be used "
            "with user or clientId filter component.",
        ),
    ],
)
def test_a_filter_that_cannot_be_is_refused(
    kinds: list[str], error: type[ApiError], reason: str
) -> None:
    with pytest.raises(error) as refused:
        check_components([Component(kind, is_any=True) for kind in kinds])
    assert reason == refused.value.detail


def test_only_quotas_of_an_entity_are_described() -> None:
    config = {"producer_byte_rate": "5", "SCRAM-SHA-256": "secret"}
    assert {"producer_byte_rate": 5.0} == quotas_in(config, quota_keys())
    with pytest.raises(UnexpectedChange):
        quotas_in({"producer_byte_rate": "many"}, quota_keys())
