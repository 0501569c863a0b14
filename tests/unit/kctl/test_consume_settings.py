from __future__ import annotations

import pytest

from engine.client.fetching import FetchOptions
from kctl.arguments import UnreadableArgument
from kctl.commands.consume.settings import CONSUMER_KEYS, fetch_options
from tests.cli.commands import all_leaves


def test_without_settings_it_is_as_ever() -> None:
    assert FetchOptions() == fetch_options({}, read_committed=None)


@pytest.mark.parametrize("key", CONSUMER_KEYS)
def test_every_setting_has_an_effect(key: str) -> None:
    value = "read_committed" if key == "isolation.level" else "1234"
    assert FetchOptions() != fetch_options({key: value}, read_committed=None)


@pytest.mark.parametrize("key", [key for key in CONSUMER_KEYS if key != "client.rack"])
def test_what_is_no_value_is_refused(key: str) -> None:
    for text in ("0", "-1", "many", "99999999999"):
        with pytest.raises(UnreadableArgument, match=key):
            fetch_options({key: text}, read_committed=None)


def test_an_option_goes_before_its_setting() -> None:
    settings = {"isolation.level": "read_committed"}
    assert not fetch_options(settings, read_committed=False).read_committed


def test_without_an_option_the_setting_decides_what_is_read() -> None:
    (option,) = (p for p in all_leaves()["consume"].params if p.name == "read_committed")
    assert option.default is None
    found = fetch_options({"isolation.level": "read_committed"}, read_committed=option.default)
    assert found.read_committed
