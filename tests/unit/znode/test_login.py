"""Where a login to ZooKeeper comes from, and what is no login."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.errors import ConfigError
from engine.host.ports import FileMissing
from engine.znode.login import (
    JAAS_FILE,
    ZookeeperLogin,
    read_client_login,
    read_server_users,
    system_properties,
)

_MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"
_FILE = {JAAS_FILE: "/jaas.conf"}
_WHOLE = f"""
Client {{ {_MODULE} required username="kafka" password="secret"; }};
Other {{ {_MODULE} required username="other" password="more"; }};
Server {{ {_MODULE} required user_kafka="secret" user_a="b" extra="c"; }};
"""


def test_a_client_has_the_name_and_the_password_of_its_section() -> None:
    assert read_client_login(_FILE, _reading(_WHOLE)) == ZookeeperLogin("kafka", "secret")
    other = {**_FILE, "zookeeper.sasl.clientconfig": "Other"}
    assert read_client_login(other, _reading(_WHOLE)) == ZookeeperLogin("other", "more")
    assert "secret" not in repr(read_client_login(_FILE, _reading(_WHOLE)))


def test_without_file_or_section_there_is_no_login() -> None:
    assert read_client_login({}, _reading(_WHOLE)) is None
    assert read_client_login({JAAS_FILE: ""}, _reading(_WHOLE)) is None
    assert read_client_login(_FILE, _reading("KafkaServer { M required; };")) is None
    # Kafka asks about the section only.
    off = {**_FILE, "zookeeper.sasl.client": "false"}
    assert read_client_login(off, _reading("")) is None


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("Client {", {}),
        (f"Client {{ {_MODULE} required username=kafka; }};", {}),
        (f"Client {{ {_MODULE} required password=secret; }};", {}),
        ("Client { com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true; };", {}),
        (_WHOLE, {"zookeeper.sasl.client": "false"}),
    ],
)
def test_what_is_no_login_stops_the_start(text: str, more: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as refused:
        read_client_login({**_FILE, **more}, _reading(text))
    assert "secret" not in str(refused.value)


def test_a_file_that_cannot_be_read_stops_the_start() -> None:
    def missing(path: str) -> bytes:
        raise FileMissing(path)

    with pytest.raises(ConfigError, match=r"/jaas\.conf"):
        read_client_login(_FILE, missing)
    with pytest.raises(ConfigError, match="UTF-8"):
        read_client_login(_FILE, lambda _path: b"\xff")


def test_a_server_has_the_users_of_its_section() -> None:
    assert {"kafka": "secret", "a": "b"} == read_server_users(_FILE, _reading(_WHOLE))
    assert {} == read_server_users({}, _reading(_WHOLE))
    assert {} == read_server_users(_FILE, _reading("Client { M required; };"))


def test_options_of_a_jvm_have_the_properties() -> None:
    options = f"-Xmx1g -D{JAAS_FILE}=/etc/kafka/jaas.conf '-Dzookeeper.sasl.clientconfig=A b' -Dx=y"
    assert system_properties(options) == {
        JAAS_FILE: "/etc/kafka/jaas.conf",
        "zookeeper.sasl.clientconfig": "A b",
    }
    assert {} == system_properties("")
    assert {JAAS_FILE: "it's"} == system_properties(f"-D{JAAS_FILE}=it's")


def _reading(text: str) -> Callable[[str], bytes]:
    def read(path: str) -> bytes:
        assert path == "/jaas.conf"
        return text.encode()

    return read
