"""`kctl cluster start --advertise HOST`: a listener on all addresses, named for clients."""

from __future__ import annotations

import re
from collections.abc import Mapping

from engine.cluster.plan import ClusterPlan
from engine.errors import EngineError
from kctl import exits
from kctl.arguments import UnreadableArgument

_HOST = re.compile(r"[\w.-]+|\[[0-9A-Fa-f:.]+\]", re.ASCII)
_PORTS = re.compile(r":([0-9]+)(?=\s*(?:,|$))")
_LISTENERS = ("listeners", "advertised.listeners")


class AdvertisedTwice(EngineError):
    """--advertise is given where listeners are set otherwise."""

    exit_code = exits.USAGE
    hint = "give the host in advertised.listeners, by --set or in the file of --config"

    def __init__(self, name: str) -> None:
        super().__init__(f"--advertise sets the one listener of a broker, and {name} is set too")
        self.name = name


class PortOfListeners(EngineError):
    """--port is given, and the listeners that are set have others."""

    exit_code = exits.USAGE
    hint = (
        "--advertise HOST with --port sets them again, --set listeners=… to what is given; "
        "--unset listeners --unset advertised.listeners leaves them to --port"
    )

    def __init__(self, port: int, listeners: str) -> None:
        super().__init__(f"--port {port} is the port of no listener: they are set to {listeners}")
        self.port = port
        self.listeners = listeners


def check_port(plan: ClusterPlan, port: int | None) -> None:
    """Raise PortOfListeners if a port is given that the plan's own listeners do not have."""
    listeners = plan.settings.get("listeners", "")
    if port and listeners and str(port) not in _PORTS.findall(listeners):
        raise PortOfListeners(port, listeners)


def advertised_settings(
    host: str, port: int | None, kept: ClusterPlan | None, settings: Mapping[str, str]
) -> dict[str, str]:
    """Return the settings by which the first broker advertises a host, at its own port.

    `settings` are the other given settings. Errors: AdvertisedTwice, UnreadableArgument.
    """
    if not _HOST.fullmatch(host):
        raise UnreadableArgument("a host", host, "a name or an address, as kafka or [::1]")
    for name in _LISTENERS:
        if name in settings:
            raise AdvertisedTwice(name)
    plan = kept or ClusterPlan()
    port = plan.port if port is None else port
    named = {**plan.settings, **settings}.get("inter.broker.listener.name", "PLAINTEXT")
    # All addresses of IPv4 are none of IPv6, and a machine may have IPv4 alone.
    everywhere = "[::]" if host.startswith("[") else "0.0.0.0"
    addresses = (f"{named}://{everywhere}:{port}", f"{named}://{host}:{port}")
    return dict(zip(_LISTENERS, addresses, strict=True))
