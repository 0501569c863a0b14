"""Names of the brokers whose settings a request is about."""

from __future__ import annotations

import pytest

from engine.admin.config_errors import InvalidRequest
from engine.api.config_resources import require_own_id, value_message
from engine.config.broker_config import BrokerConfig
from engine.config.settings import BrokerSettings
from engine.errors import ConfigError


@pytest.mark.parametrize("name", ["7", "+7", "007", "0" * 40 + "7"])
def test_a_number_is_read_as_java_reads_it(name: str) -> None:
    require_own_id(name, 7)


@pytest.mark.parametrize("name", ["8", "-7", "2147483647", "-2147483648"])
def test_another_brokers_number_is_refused_as_that(name: str) -> None:
    with pytest.raises(InvalidRequest, match=f"expected 7, but received {name}"):
        require_own_id(name, 7)


@pytest.mark.parametrize(
    "name",
    ["", "x", " 7", "7 ", "1_0", "7.0", "٧", "2147483648", "-2147483649", "9" * 11, "9" * 5000],
)
def test_what_is_no_int_is_refused_as_that(name: str) -> None:
    with pytest.raises(InvalidRequest, match="Node id must be an integer"):
        require_own_id(name, 7)


def test_settings_that_contradict_each_other_are_refused_in_kafkas_words() -> None:
    key = "log.cleaner.dedupe.buffer.size"
    with pytest.raises(ConfigError) as refused:
        BrokerConfig.parse(
            BrokerSettings({"broker.id": "1", key: "2097152", "log.cleaner.threads": "2"})
        )
    expected = f"requirement failed: {key} must be at least 1MB per cleaner thread."
    assert expected == value_message(refused.value)
