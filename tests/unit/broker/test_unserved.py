"""Settings that this broker does not start with."""

from __future__ import annotations

import pytest

from engine.errors import ConfigError
from tests.unit.broker.memory_broker import MemoryBroker

_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("principal_builder_class", "my.Builder"),
        ("process_roles", "broker,controller"),
        ("create_topic_policy_class_name", "my.Policy"),
        ("alter_config_policy_class_name", "my.Policy"),
        ("client_quota_callback_class", "my.Callback"),
        ("remote_log_storage_system_enable", "true"),
        ("zookeeper_set_acl", "true"),
        ("zookeeper_ssl_client_enable", "true"),
        ("authorizer_class_name", "my.Authorizer"),
        ("replica_selector_class", "my.Selector"),
    ],
)
def test_what_would_have_to_be_ignored_stops_the_start(name: str, text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        MemoryBroker(**{name: text}).start()
    assert refused.value.key == name.replace("_", ".")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("super_users", "User:a;b"),
        ("allow_everyone_if_no_acl_found", "yes"),
        ("allow_everyone_if_no_acl_found", ""),
        ("authorizer_zookeeper_url", "elsewhere:2181"),
    ],
)
def test_settings_of_an_authorizer_are_checked(name: str, text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        MemoryBroker(authorizer_class_name=_AUTHORIZER, **{name: text}).start()
    assert refused.value.key == name.replace("_", ".")
    # Nobody reads them where there is no authorizer.
    MemoryBroker(**{name: text}).start().stop()


@pytest.mark.parametrize("text", ["", "false"])
def test_what_is_off_is_fine(text: str) -> None:
    MemoryBroker(remote_log_storage_system_enable=text or "false", process_roles="").start().stop()
