"""Many clients of one machine, and the settings that bound them, against a broker that runs."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from engine.host.descriptors import raise_descriptor_limit
from engine.wire.structs import message_class
from tests.cluster.embedded import EmbeddedCluster
from tests.cluster.raw_client import RawClient

_BROKER, _SET, _DELETE = 4, 0, 1
#: The source of a setting that is dynamic and for all brokers.
_OF_ALL = 3
_DEADLINE_S = 20.0
_SHORT_S = 0.3


class Admin:
    """A client that changes settings while the broker runs."""

    def __init__(self, address: str) -> None:
        self._client = RawClient(address)
        self._set: set[str] = set()

    def close(self) -> None:
        """Take away what is still set."""
        if self._set:
            self.set(**dict.fromkeys(self._set))
        self._client.socket.close()

    def set(self, **settings: str | None) -> None:
        """Set keys for all brokers, with `_` for `.`; None takes one away. Waits until it holds."""
        wanted = {key.replace("_", "."): value for key, value in settings.items()}
        self._set |= wanted.keys()
        self._set -= {name for name, value in wanted.items() if value is None}
        request = message_class("IncrementalAlterConfigsRequest")
        configs = [
            request.AlterableConfig(
                name=name, config_operation=_DELETE if value is None else _SET, value=value
            )
            for name, value in wanted.items()
        ]
        resource = request.AlterConfigsResource(
            resource_type=_BROKER, resource_name="", configs=configs
        )
        reply = self._client.ask("IncrementalAlterConfigs", 1, resources=[resource])
        assert reply.responses[0].error_code == 0, reply.responses[0].error_message
        deadline = time.monotonic() + _DEADLINE_S
        while any(self._dynamic(name) != value for name, value in wanted.items()):
            assert time.monotonic() < deadline

    def _dynamic(self, name: str) -> str | None:
        """Return what is set for all brokers, as broker 1 goes by it."""
        request = message_class("DescribeConfigsRequest")
        resource = request.DescribeConfigsResource(
            resource_type=_BROKER, resource_name="1", configuration_keys=[name]
        )
        reply = self._client.ask("DescribeConfigs", 4, resources=[resource], include_synonyms=True)
        configs: list[Any] = reply.results[0].configs
        synonyms = (synonym for config in configs for synonym in config.synonyms)
        return next((synonym.value for synonym in synonyms if synonym.source == _OF_ALL), None)


@pytest.fixture(scope="module")
def inside() -> str:
    """Return an address for brokers, where nobody listens yet."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{sock.getsockname()[1]}"


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory, inside: str) -> Iterator[EmbeddedCluster]:
    cluster = EmbeddedCluster(tmp_path_factory.mktemp("connections") / "cluster")
    listeners = f"PLAINTEXT://127.0.0.1:0,INSIDE://{inside}"
    cluster.start(listeners=listeners, **_TWO_LISTENERS)
    yield cluster
    cluster.destroy()


_TWO_LISTENERS = {
    "listener_security_protocol_map": "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT",
    "inter_broker_listener_name": "INSIDE",
}


@pytest.fixture
def admin(own: EmbeddedCluster) -> Iterator[Admin]:
    admin = Admin(own.address)
    yield admin
    admin.close()


def _state(client: RawClient) -> str:
    """Return whether a client is served, closed, or waits."""
    client.socket.settimeout(_SHORT_S)
    try:
        client.ask("ApiVersions", 0)
    except TimeoutError:
        return "waits"
    except ConnectionError:
        return "closed"
    return "served"


@pytest.mark.slow
@pytest.mark.parametrize("count", [250, 1000])
def test_as_many_clients_of_one_machine_as_come_are_served(
    own: EmbeddedCluster, count: int
) -> None:
    if raise_descriptor_limit() < 2 * count + 100:
        pytest.skip("this machine allows too few descriptors")
    with ExitStack() as stack:
        clients = []
        for _ in range(count):
            client = stack.enter_context(RawClient(own.address))
            assert client.ask("ApiVersions", 0).error_code == 0
            clients.append(client)
        # All of them still are, once the last one is there.
        for client in clients:
            assert client.ask("ApiVersions", 0).error_code == 0


@pytest.mark.slow
def test_the_second_connection_of_an_address_is_closed_from_the_change_on(
    own: EmbeddedCluster, admin: Admin
) -> None:
    admin.set(max_connections_per_ip="1")
    with RawClient(own.address) as second:
        assert "closed" == _state(second)
    log = (own.data / "cluster.log").read_text()
    assert (
        "Rejected connection from /127.0.0.1, address already has the configured maximum of 1 "
        "connections." in log
    )
    assert "Updating maxConnectionsPerIp: 1" in log
    admin.set(max_connections_per_ip_overrides="127.0.0.1:2")
    with RawClient(own.address) as second, RawClient(own.address) as third:
        assert ["served", "closed"] == [_state(second), _state(third)]
    admin.set(max_connections_per_ip=None, max_connections_per_ip_overrides=None)
    with RawClient(own.address) as second, RawClient(own.address) as third:
        assert ["served", "served"] == [_state(second), _state(third)]


@pytest.mark.slow
def test_beyond_max_connections_a_client_waits_until_it_is_raised(
    own: EmbeddedCluster, admin: Admin
) -> None:
    admin.set(max_connections="2")
    with RawClient(own.address) as second, RawClient(own.address) as third:
        assert ["served", "waits"] == [_state(second), _state(third)]
        admin.set(max_connections=None)
        # What it asked while it waited is answered now.
        third.socket.settimeout(_DEADLINE_S)
        assert third.frame() is not None
        assert "served" == _state(third)


@pytest.mark.slow
def test_a_listener_has_a_maximum_of_its_own(own: EmbeddedCluster, admin: Admin) -> None:
    admin.set(**{"listener.name.plaintext.max.connections": "2"})
    with RawClient(own.address) as second, RawClient(own.address) as third:
        assert ["served", "waits"] == [_state(second), _state(third)]
        admin.set(**{"listener.name.plaintext.max.connections": None})
        third.socket.settimeout(_DEADLINE_S)
        assert third.frame() is not None


@pytest.mark.slow
def test_connections_beyond_the_rate_of_a_listener_are_throttled_and_served(
    own: EmbeddedCluster, admin: Admin, inside: str
) -> None:
    name = "listener.name.inside.max.connection.creation.rate"
    admin.set(**{name: "1"})
    with ExitStack() as stack:
        clients = [stack.enter_context(RawClient(inside)) for _ in range(11)]
        # As many as fit into ten seconds pass at once.
        assert ["served"] * 10 + ["waits"] == [_state(client) for client in clients]
        clients[-1].socket.settimeout(_DEADLINE_S)
        assert clients[-1].frame() is not None
    admin.set(**{name: None})
    log = (own.data / "cluster.log").read_text()
    assert "ms by max.connection.creation.rate" in log


@pytest.mark.slow
def test_the_log_reports_how_many_descriptors_there_are(own: EmbeddedCluster) -> None:
    assert "descriptors" in (own.data / "cluster.log").read_text()
