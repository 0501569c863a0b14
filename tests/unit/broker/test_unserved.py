"""Settings that this broker does not start with."""

from __future__ import annotations

import pytest

from engine.errors import ConfigError
from engine.znode.model import Create
from tests.unit.broker.memory_broker import MemoryBroker

_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("listeners", "PLAINTEXT://here:9092,SSL://here:9093"),
        ("listeners", "PLAINTEXT://here:9092,SASL_PLAINTEXT://here:9093"),
        ("process_roles", "broker,controller"),
        ("create_topic_policy_class_name", "my.Policy"),
        ("alter_config_policy_class_name", "my.Policy"),
        ("remote_log_storage_system_enable", "true"),
        ("authorizer_class_name", _AUTHORIZER),
        ("replica_selector_class", "my.Selector"),
    ],
)
def test_what_would_have_to_be_ignored_stops_the_start(name: str, text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        MemoryBroker(**{name: text}).start()
    assert refused.value.key == name.replace("_", ".")


@pytest.mark.parametrize(
    "more",
    [
        {"super_users": "User:admin;User:ANONYMOUS"},
        {"allow_everyone_if_no_acl_found": "true"},
    ],
)
def test_an_authorizer_that_lets_everyone_in_is_as_good_as_none(more: dict[str, str]) -> None:
    stage = MemoryBroker(authorizer_class_name=_AUTHORIZER, **more).start()
    assert stage.connect().ask("Metadata", 9, topics=None).brokers
    stage.stop()


def test_acls_that_nobody_would_check_stop_the_start() -> None:
    first = MemoryBroker().start()
    session = first.broker.znodes.session_id
    for path in ("/kafka-acl", "/kafka-acl/Topic", "/kafka-acl/Topic/secret"):
        first.store.apply(session, Create(path))
    first.stop()
    settings = {"allow_everyone_if_no_acl_found": "true", "authorizer_class_name": _AUTHORIZER}
    with pytest.raises(ConfigError, match="/kafka-acl/Topic/secret"):
        MemoryBroker(first.files, first.store, **settings).start()
    users = MemoryBroker(first.files, first.store, super_users="User:ANONYMOUS", **settings)
    users.start().stop()


@pytest.mark.parametrize("text", ["", "false"])
def test_what_is_off_is_fine(text: str) -> None:
    MemoryBroker(remote_log_storage_system_enable=text or "false", process_roles="").start().stop()
