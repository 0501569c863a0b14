"""The bounds of a process's network, as its broker's settings say."""

from __future__ import annotations

from typing import Protocol

from engine.broker.dynamic_config import LiveConfig
from engine.config.settings import BrokerSettings
from engine.host.real_network import NetworkLimits
from engine.limits import CONNECTIONS_MAX, CONNECTIONS_PER_ADDRESS_MAX, IN_FLIGHT_BYTES_MAX

_KERNELS_OWN = -1


class Bounded(Protocol):
    """A network whose bounds can change."""

    limits: NetworkLimits


def keep_limits(network: Bounded, live: LiveConfig) -> None:
    """Let a network go by a broker's settings, also when they change."""

    def apply() -> None:
        network.limits = limits_of(live)

    apply()
    live.on_broker(lambda _old, _new: apply())


def limits_of(live: LiveConfig) -> NetworkLimits:
    """Return the bounds that hold now: the settings', or our own where those are tighter."""
    config, settings = live.config, live.settings
    queued = config.queued_max_request_bytes
    return NetworkLimits(
        frame_bytes_max=config.socket_request_max_bytes,
        connections_max=min(config.max_connections, CONNECTIONS_MAX),
        connections_per_address_max=min(config.max_connections_per_ip, CONNECTIONS_PER_ADDRESS_MAX),
        idle_ms=config.connections_max_idle_ms,
        send_buffer_bytes=_if_set(settings, "socket.send.buffer.bytes"),
        receive_buffer_bytes=_if_set(settings, "socket.receive.buffer.bytes"),
        in_flight_bytes_max=min(queued, IN_FLIGHT_BYTES_MAX) if queued > 0 else IN_FLIGHT_BYTES_MAX,
    )


def _if_set(settings: BrokerSettings, name: str) -> int:
    """Return a size that somebody set, −1 for Kafka's default: the kernel's own sizes cost less."""
    value = settings.value(name) if settings.set_text(name) is not None else None
    return value if isinstance(value, int) else _KERNELS_OWN
