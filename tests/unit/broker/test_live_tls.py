"""Keys and certificates of listeners are read again while a broker runs, as Kafka does."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from engine.broker import live_tls
from engine.errors import ConfigError
from engine.host.certificates import Validity, create_authority, issue_certificate
from engine.wire.structs import message_class
from tests.unit.broker.memory_broker import MemoryBroker

LOCATION = "listener.name.ssl.ssl.keystore.location"
NAMES = {
    "a": ("localhost", ("localhost",)),
    "b": ("localhost", ("localhost", "other.example")),
    "stranger": ("stranger", ("localhost",)),
}
VALIDITY = Validity(1_700_000_000_000, 3650)


@cache
def pems() -> dict[str, bytes]:
    """Return keys with their certificates, by the name of their file."""
    authority = create_authority("ca", VALIDITY)
    found = {}
    for name, (common_name, hosts) in NAMES.items():
        issued = issue_certificate(authority, common_name, hosts, VALIDITY, is_broker=True)
        found[name] = issued.key_pem + issued.certificate_pem
    return found


@pytest.fixture
def stores(tmp_path: Path) -> Path:
    for name, content in pems().items():
        (tmp_path / f"{name}.pem").write_bytes(content)
    shutil.copy(tmp_path / "a.pem", tmp_path / "live.pem")
    return tmp_path


@pytest.fixture
def stage(stores: Path) -> Iterator[MemoryBroker]:
    stage = MemoryBroker(listeners="PLAINTEXT://here:0,SSL://here:0")
    stage.set("listener.name.ssl.ssl.keystore.type", "PEM")
    stage.set(LOCATION, str(stores / "live.pem"))
    yield stage.start()
    stage.stop()
    assert not stage.faults


def alter(stage: MemoryBroker, key: str, value: Path | str, *, dry: bool = False) -> Any:
    of = message_class("IncrementalAlterConfigsRequest")
    resource = of.AlterConfigsResource(
        resource_type=4,
        resource_name="1",
        configs=[of.AlterableConfig(config_operation=0, name=key, value=str(value))],
    )
    answer = stage.connect().ask(
        "IncrementalAlterConfigs", 1, resources=[resource], validate_only=dry
    )
    stage.timers.run_until_idle()
    return answer.responses[0].error_code, answer.responses[0].error_message


def hosts(stage: MemoryBroker) -> set[str]:
    """Return the hosts of the certificate that new connections see."""
    return set(stage.broker.tls._loaded["SSL"].certificate.hosts)


A, B = {"[2, localhost]"}, {"[2, localhost]", "[2, other.example]"}


def test_another_key_store_is_gone_by(stage: MemoryBroker, stores: Path) -> None:
    assert hosts(stage) == A
    before = stage.broker.tls._loaded["SSL"].layer
    assert (0, None) == alter(stage, LOCATION, stores / "b.pem")
    assert hosts(stage) == B
    assert before != stage.broker.tls._loaded["SSL"].layer


def test_a_replaced_file_is_read_with_the_next_change(stage: MemoryBroker, stores: Path) -> None:
    shutil.copy(stores / "b.pem", stores / "live.pem")
    assert hosts(stage) == A
    assert (0, None) == alter(stage, LOCATION, stores / "live.pem", dry=True)
    assert hosts(stage) == A
    assert (0, None) == alter(stage, LOCATION, stores / "live.pem")
    assert hosts(stage) == B


@pytest.mark.parametrize(
    ("file", "part"),
    [
        ("nosuch", "InvalidConfigurationException: Failed to load PEM SSL keystore "),
        (
            "stranger",
            "DistinguishedName does not match:  existing={alias=1, DN=CN=localhost}, new=",
        ),
    ],
)
def test_a_store_that_cannot_be_gone_by_is_refused_in_kafkas_words(
    stage: MemoryBroker, stores: Path, file: str, part: str
) -> None:
    for dry in (True, False):
        code, message = alter(stage, LOCATION, stores / f"{file}.pem", dry=dry)
        assert 42 == code
        start = (
            "Invalid value org.apache.kafka.common.config.ConfigException: Validation of dynamic "
            "config update of SSLFactory failed: org.apache.kafka.common."
        )
        assert message.startswith(start)
        assert part in message
        assert message.endswith(" for configuration Invalid dynamic configuration")
    assert hosts(stage) == A


def test_a_certificate_for_fewer_hosts_is_refused_unless_it_is_allowed(
    stage: MemoryBroker, stores: Path
) -> None:
    alter(stage, LOCATION, stores / "b.pem")
    code, message = alter(stage, LOCATION, stores / "a.pem")
    assert 42 == code
    assert "SubjectAltNames do not match" in message
    assert hosts(stage) == B


def test_a_file_that_fails_for_connections_to_others_leaves_the_listener_as_it_is(
    stage: MemoryBroker, stores: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when it is replaced a second time, by half of it, while it is read."""
    tls = stage.broker.tls
    between = next(one for one in tls._live.config.bound_listeners if one.name == "SSL")
    tls.layer_to_peers(between)
    monkeypatch.setattr(type(tls._live.config), "inter_broker_endpoint", between)
    before = tls._peer

    def fail(*_: object) -> None:
        raise ConfigError("listener.name.ssl.ssl.*", "live.pem", "is half of a file")

    shutil.copy(stores / "b.pem", stores / "live.pem")
    with monkeypatch.context() as failing:
        failing.setattr(live_tls, "peer_layer", fail)
        code, message = alter(stage, "log.cleaner.threads", "2")
        assert (40, True) == (code, "is half of a file" in message)
        assert (A, before) == (hosts(stage), tls._peer)
    assert (0, None) == alter(stage, "log.cleaner.threads", "2")
    assert (B, True) == (hosts(stage), before is not tls._peer)


def test_a_replaced_file_that_cannot_be_gone_by_refuses_every_change(
    stage: MemoryBroker, stores: Path
) -> None:
    (stores / "live.pem").write_bytes(b"junk")
    code, message = alter(stage, "log.cleaner.threads", "2")
    assert 40 == code
    assert message.startswith(
        "Invalid config value for resource ConfigResource(type=BROKER, name='1'): Validation of "
        "dynamic config update of SSLFactory failed: "
    )
    assert hosts(stage) == A
    shutil.copy(stores / "b.pem", stores / "live.pem")
    assert (0, None) == alter(stage, "log.cleaner.threads", "2")
    assert hosts(stage) == B
