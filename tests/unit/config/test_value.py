"""Texts to values and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config.key import (
    ConfigKey,
    ConfigType,
    UpdateMode,
    admin_keys,
    broker_keys,
    client_metrics_keys,
    consumer_keys,
    ip_keys,
    producer_keys,
    quota_keys,
    scram_keys,
    topic_keys,
)
from engine.config.value import ConfigValue, format_double, format_value, parse_value
from engine.errors import ConfigError

TABLES = [
    broker_keys,
    topic_keys,
    quota_keys,
    scram_keys,
    ip_keys,
    client_metrics_keys,
    producer_keys,
    consumer_keys,
    admin_keys,
]


def key_of(type_name: ConfigType, valid: str = "-") -> ConfigKey:
    return ConfigKey("k", type_name, None, False, valid, "low")


T = ConfigType


@pytest.mark.parametrize(
    ("key", "text", "value", "shown"),
    [
        (key_of(T.BOOLEAN), " TRUE ", True, "true"),
        (key_of(T.BOOLEAN), "false", False, "false"),
        (key_of(T.INT), "+007", 7, "7"),
        (key_of(T.INT), "-2147483648", -(1 << 31), "-2147483648"),
        (key_of(T.SHORT), "32767", 32767, "32767"),
        (key_of(T.LONG), "9223372036854775807", (1 << 63) - 1, "9223372036854775807"),
        (key_of(T.DOUBLE), "1e1", 10.0, "10.0"),
        (key_of(T.DOUBLE), ".5d", 0.5, "0.5"),
        (key_of(T.LIST), " a , b,c ", ("a", "b", "c"), "a,b,c"),
        (key_of(T.LIST), "  ", (), ""),
        (key_of(T.LIST), "a,", ("a", ""), "a,"),
        (key_of(T.STRING), " x y ", "x y", "x y"),
        (key_of(T.CLASS), "a.B", "a.B", "a.B"),
        (key_of(T.INT, "[1,...,9] or -1"), "-1", -1, "-1"),
        (key_of(T.INT, "[1,...,9] or -1"), "9", 9, "9"),
        (key_of(T.LONG, "[-2,...]"), "-2", -2, "-2"),
        (key_of(T.DOUBLE, "[0,...,0.5]"), "0.5", 0.5, "0.5"),
        (key_of(T.LIST, "[compact, delete]"), "delete,compact", ("delete", "compact"), None),
        (key_of(T.STRING, "any case [A, B]"), "b", "b", "b"),
        (key_of(T.STRING, "release"), "2.8-IV1", "2.8-IV1", "2.8-IV1"),
        (key_of(T.LIST, "replicas"), "*", ("*",), "*"),
        (key_of(T.LIST, "replicas"), "0:1,1:2", ("0:1", "1:2"), "0:1,1:2"),
        (key_of(T.LIST, "replicas"), "", (), ""),
        (key_of(T.LIST, "replicas"), ",0:1,,", ("", "0:1", "", ""), ",0:1,,"),
        (key_of(T.LIST, "replicas"), ",", ("", ""), ","),
        (key_of(T.LIST, "replicas"), "*,", ("*", ""), "*,"),
    ],
)
def test_a_text_is_read_and_written_as_kafka_does(
    key: ConfigKey, text: str, value: ConfigValue, shown: str | None
) -> None:
    assert value == parse_value(key, text)
    if shown is not None:
        assert shown == format_value(key, value)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (key_of(T.BOOLEAN), "yes"),
        (key_of(T.INT), ""),
        (key_of(T.INT), "1_000"),
        (key_of(T.INT), "1.0"),
        (key_of(T.INT), "2147483648"),
        (key_of(T.SHORT), "-32769"),
        (key_of(T.LONG), "9" * 100_000),
        (key_of(T.DOUBLE), "NaN"),
        (key_of(T.DOUBLE), "1e999"),
        (key_of(T.DOUBLE), "1" * 100_000),
        (key_of(T.INT, "[1,...,9] or -1"), "0"),
        (key_of(T.INT, "[1,...,9] or -1"), "10"),
        (key_of(T.LONG, "[-2,...]"), "-3"),
        (key_of(T.DOUBLE, "[0,...,1]"), "1.1"),
        (key_of(T.LIST, "[compact, delete]"), "delete,shrink"),
        (key_of(T.LIST, "[compact, delete]"), "compact,"),
        (key_of(T.STRING, "[gzip, zstd]"), "GZIP"),
        (key_of(T.STRING, "any case [A, B]"), "c"),
        (key_of(T.STRING, "release"), "three"),
        (key_of(T.STRING, "non-empty string"), ""),
        (key_of(T.LIST, "replicas"), "0-1"),
        (key_of(T.LIST, "replicas"), "*,0:1"),
    ],
)
def test_a_bad_text_is_a_typed_error_with_its_rule(key: ConfigKey, text: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_value(key, text)
    assert "k" == error.value.key
    assert error.value.rule
    assert len(str(error.value)) < 1000


def test_a_required_key_must_be_given() -> None:
    with pytest.raises(ConfigError, match="must be given"):
        parse_value(consumer_keys()["key.deserializer"], None)
    assert parse_value(key_of(T.STRING), None) is None


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.__name__)
def test_every_default_is_valid_and_comes_back(table: object) -> None:
    keys = table()  # type: ignore[operator]
    assert list(keys) == sorted(keys)
    for key in keys.values():
        if not key.is_required:
            assert key.default == format_value(key, parse_value(key, key.default))


def test_the_tables_are_whole() -> None:
    assert [331, 36, 4, 2, 1, 3, 95, 98, 74] == [len(table()) for table in TABLES]
    keys = broker_keys()
    assert 14 == sum(key.is_internal for key in keys.values())
    modes = [key.update_mode for key in keys.values()]
    assert (239, 37, 52, 3) == (
        modes.count(UpdateMode.READ_ONLY),
        modes.count(UpdateMode.PER_BROKER),
        modes.count(UpdateMode.CLUSTER_WIDE),
        modes.count(UpdateMode.DYNAMIC_ONLY),
    )
    for key in topic_keys().values():
        assert all(synonym in keys for synonym in key.broker_synonyms)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (0.00012345, "1.2345E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (2147483647.0, "2.147483647E9"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (-12345678.5, "-1.23456785E7"),
        (1e23, "1.0E23"),
    ],
)
def test_doubles_are_written_as_java_does(value: float, text: str) -> None:
    assert text == format_double(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_written_double_comes_back(value: float) -> None:
    assert value == parse_value(key_of(T.DOUBLE), format_double(value))


@pytest.mark.parametrize(
    "text", ["0.8.2", "0.9.0.1", "0.10.2-IV0", "0.10.2.1", "3.0", "3.9.1", "3.9-IV0", "4.0-IV1"]
)
def test_a_release_may_go_on_after_what_counts(text: str) -> None:
    assert text == parse_value(key_of(T.STRING, "release"), text)


@pytest.mark.parametrize("text", ["", "9.9", "1", "0.10", "2.8-IV7", "4.0", "3.9-IV00", "x3.0"])
def test_no_other_release_is_known(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_value(key_of(T.STRING, "release"), text)
