"""The limits of a broker's connections, from its settings.

| setting | also for one listener |
|---|---|
| max.connections, max.connection.creation.rate | with the prefix `listener.name.<name>.` |
| max.connections.per.ip, max.connections.per.ip.overrides | no |
| socket.request.max.bytes, socket.*.buffer.bytes, queued.max.request.bytes | no |
| connections.max.idle.ms | no |
| for channels to brokers: controller.socket.timeout.ms, replica.socket.* | no |

Source: SCH-15; SocketServer.addListener, ListenerConnectionQuota;
KafkaConfig.valuesWithPrefixOverride.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.broker.connection_quotas import ConnectionBounds, ListenerBounds
from engine.broker.dynamic_config import LiveConfig
from engine.broker.peers import ChannelSettings
from engine.config.broker_config import BrokerConfig
from engine.config.listener_settings import ListenerSettings
from engine.config.settings import BrokerSettings
from engine.errors import ConfigError
from engine.host.ports import ConnectionLimits
from engine.limits import IN_FLIGHT_BYTES_MAX

_KERNELS_OWN = -1
_OVERRIDES = "max.connections.per.ip.overrides"


def limits_of(live: LiveConfig) -> ConnectionLimits:
    """Return the limits of each client connection by the present settings.

    They are of frames, idle time and socket buffers.
    """
    config, settings = live.config, live.settings
    return ConnectionLimits(
        frame_bytes_max=config.socket_request_max_bytes,
        idle_ms=config.connections_max_idle_ms,
        send_buffer_bytes=_if_set(settings, "socket.send.buffer.bytes"),
        receive_buffer_bytes=_if_set(settings, "socket.receive.buffer.bytes"),
    )


def channel_settings(live: LiveConfig) -> ChannelSettings:
    """Return the settings of this broker's channels to other brokers."""
    config = live.config
    return ChannelSettings(
        config.controller_socket_timeout_ms,
        config.replica_socket_timeout_ms,
        _if_set(live.settings, "replica.socket.receive.buffer.bytes"),
    )


def in_flight_bytes_max(config: BrokerConfig) -> int:
    """Return the limit in bytes of all incomplete frames together: queued.max.request.bytes.

    It is at most IN_FLIGHT_BYTES_MAX, which also is the limit if the setting has none.
    """
    queued = config.queued_max_request_bytes
    return min(queued, IN_FLIGHT_BYTES_MAX) if queued > 0 else IN_FLIGHT_BYTES_MAX


def bounds_of(live: LiveConfig, per_address: Mapping[str, int]) -> ConnectionBounds:
    """Return the limits on number and rate of connections, by the present settings.

    `per_address` has the limits of single addresses.
    """
    config = live.config
    return ConnectionBounds(
        config.max_connections,
        config.max_connection_creation_rate,
        config.max_connections_per_ip,
        per_address,
        {
            listener.name: ListenerBounds(
                _of_listener(live.settings, listener.name, "max.connections"),
                _of_listener(live.settings, listener.name, "max.connection.creation.rate"),
            )
            for listener in config.bound_listeners
        },
    )


def overrides_of(config: BrokerConfig, address_of: Callable[[str], str | None]) -> dict[str, int]:
    """Return `max.connections.per.ip.overrides` by address; raises ConfigError.

    `address_of` resolves a host name; it returns None for an unknown one.
    """
    bounds = {}
    for host, count in config.connections_per_ip_overrides.items():
        address = address_of(host)
        if address is None:
            raise ConfigError(
                _OVERRIDES,
                config.max_connections_per_ip_overrides,
                f"{host} has no address",
            )
        bounds[address] = count
    return bounds


def _of_listener(settings: BrokerSettings, listener: str, name: str) -> int:
    """Return the value of a setting for a listener; the broker's value if the listener has none."""
    value = ListenerSettings(settings, listener).value(name)
    assert isinstance(value, int)
    return value


def _if_set(settings: BrokerSettings, name: str) -> int:
    """Return a configured buffer size, −1 if it is not set: the kernel's default is cheaper."""
    value = settings.value(name) if settings.configured_text(name) is not None else None
    return value if isinstance(value, int) else _KERNELS_OWN
