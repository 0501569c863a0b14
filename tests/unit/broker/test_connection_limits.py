"""The bounds on connections that a broker's settings say."""

from __future__ import annotations

import pytest

from engine.broker.connection_limits import (
    bounds_of,
    channel_settings,
    in_flight_bytes_max,
    limits_of,
    overrides_of,
)
from engine.broker.connection_quotas import ListenerBounds
from engine.broker.dynamic_config import LiveConfig
from engine.broker.peers import ChannelSettings
from engine.config.settings import BrokerSettings
from engine.errors import ConfigError
from engine.limits import IN_FLIGHT_BYTES_MAX

UNBOUNDED = (1 << 31) - 1
TWO_LISTENERS = {
    "listeners": "OUT://h:1,IN://h:2",
    "listener.security.protocol.map": "OUT:PLAINTEXT,IN:PLAINTEXT",
    "inter.broker.listener.name": "IN",
}


def _live(**settings: str) -> LiveConfig:
    given = {name.replace("_", "."): text for name, text in settings.items()}
    return LiveConfig(BrokerSettings({"zookeeper.connect": "here:2181"} | given))


def _address_of(host: str) -> str | None:
    return {"host": "10.0.0.7", "10.0.0.8": "10.0.0.8"}.get(host)


def test_without_settings_nothing_is_bounded() -> None:
    bounds = bounds_of(_live(), {})
    assert (UNBOUNDED, UNBOUNDED, UNBOUNDED) == bounds[:3]
    assert {"PLAINTEXT": ListenerBounds(UNBOUNDED, UNBOUNDED)} == bounds.of_listeners


def test_a_listener_goes_by_its_own_setting_before_the_brokers() -> None:
    live = LiveConfig(
        BrokerSettings(
            {
                "zookeeper.connect": "here:2181",
                **TWO_LISTENERS,
                "max.connections": "70",
                "listener.name.in.max.connections": "7",
                "listener.name.out.max.connection.creation.rate": "3",
            }
        )
    )
    assert {
        "OUT": ListenerBounds(70, 3),
        "IN": ListenerBounds(7, UNBOUNDED),
    } == bounds_of(live, {}).of_listeners


def test_bounds_that_are_changed_hold_from_then_on() -> None:
    live = _live(max_connections_per_ip="100")
    live.set_broker({"max.connections.per.ip": "5"}, {"max.connections": "7"})
    bounds = bounds_of(live, {})
    assert (7, 5) == (bounds.connections_max, bounds.per_address_max)
    live.set_broker({}, {})
    assert 100 == bounds_of(live, {}).per_address_max


def test_overrides_may_name_hosts() -> None:
    live = _live(max_connections_per_ip_overrides="host:3, 10.0.0.8:0")
    assert {"10.0.0.7": 3, "10.0.0.8": 0} == overrides_of(live.config, _address_of)


def test_a_host_without_an_address_is_an_error() -> None:
    live = _live(max_connections_per_ip_overrides="nowhere:3")
    with pytest.raises(ConfigError, match="nowhere has no address"):
        overrides_of(live.config, _address_of)


@pytest.mark.parametrize(
    ("queued", "bound"),
    [("-1", IN_FLIGHT_BYTES_MAX), (str(1 << 40), IN_FLIGHT_BYTES_MAX), ("200000000", 200_000_000)],
)
def test_our_own_bound_on_memory_holds_where_the_setting_is_wider(queued: str, bound: int) -> None:
    assert bound == in_flight_bytes_max(_live(queued_max_request_bytes=queued).config)


@pytest.mark.parametrize(
    ("settings", "size"), [({}, -1), ({"socket_send_buffer_bytes": "8192"}, 8192)]
)
def test_the_kernel_sizes_buffers_where_nobody_does(settings: dict[str, str], size: int) -> None:
    assert size == limits_of(_live(**settings)).send_buffer_bytes


def test_other_brokers_are_waited_for_as_long_as_the_settings_say() -> None:
    assert ChannelSettings(30_000, 30_000, -1) == channel_settings(_live())
    given = {
        "controller_socket_timeout_ms": "1000",
        "replica_socket_timeout_ms": "2000",
        "replica_socket_receive_buffer_bytes": "70000",
    }
    assert ChannelSettings(1000, 2000, 70_000) == channel_settings(_live(**given))
