"""A network goes by its broker's settings."""

from __future__ import annotations

import pytest

from engine.broker.dynamic_config import LiveConfig
from engine.cluster.network_limits import keep_limits
from engine.config.settings import BrokerSettings
from engine.host.real_network import NetworkLimits
from engine.limits import CONNECTIONS_MAX, IN_FLIGHT_BYTES_MAX


class Network:
    """What has bounds."""

    limits = NetworkLimits()


def started(**settings: str) -> tuple[Network, LiveConfig]:
    given = {name.replace("_", "."): text for name, text in settings.items()}
    live = LiveConfig(BrokerSettings({"zookeeper.connect": "here:2181"} | given))
    network = Network()
    keep_limits(network, live)
    return network, live


def test_bounds_on_connections_that_are_changed_hold_from_then_on() -> None:
    network, live = started(max_connections_per_ip="100")
    assert 100 == network.limits.connections_per_address_max
    live.set_broker({"max.connections.per.ip": "5"}, {"max.connections": "7"})
    assert (5, 7) == (network.limits.connections_per_address_max, network.limits.connections_max)
    live.set_broker({}, {})
    assert 100 == network.limits.connections_per_address_max


def test_bounds_of_ours_hold_where_the_settings_have_wider_ones() -> None:
    network, _ = started(queued_max_request_bytes=str(1 << 40))
    assert CONNECTIONS_MAX == network.limits.connections_max
    assert IN_FLIGHT_BYTES_MAX == network.limits.in_flight_bytes_max


@pytest.mark.parametrize(
    ("settings", "size"), [({}, -1), ({"socket_send_buffer_bytes": "8192"}, 8192)]
)
def test_the_kernel_sizes_buffers_where_nobody_does(settings: dict[str, str], size: int) -> None:
    network, _ = started(**settings)
    assert size == network.limits.send_buffer_bytes
