"""`kctl cluster start --advertise HOST`: listen on all addresses and advertise the host."""

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
    """--advertise is given together with a setting of listeners."""

    exit_code = exits.USAGE
    hint = "give the host in advertised.listeners, by --set or in the file of --config"

    def __init__(self, name: str) -> None:
        super().__init__(f"--advertise sets the one listener of a broker, and {name} is set too")
        self.name = name


class PortOfListeners(EngineError):
    """--port differs from the ports of the configured listeners."""

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
    """Raise PortOfListeners if `--port` differs from the ports of the plan's `listeners`.

    Without a port, or without configured listeners, nothing is checked.
    """
    listeners = plan.settings.get("listeners", "")
    if port and listeners and str(port) not in _PORTS.findall(listeners):
        raise PortOfListeners(port, listeners)


def advertised_settings(
    host: str, port: int | None, kept: ClusterPlan | None, settings: Mapping[str, str]
) -> dict[str, str]:
    """Return `listeners` and `advertised.listeners` by which clients reach broker 1 as `host`.

    `kept` is the stored plan, None for a new cluster; `settings` are the other settings of this
    start. Errors: AdvertisedTwice, UnreadableArgument.
    """
    if not _HOST.fullmatch(host):
        raise UnreadableArgument("a host", host, "a name or an address, as kafka or [::1]")
    for name in _LISTENERS:
        if name in settings:
            raise AdvertisedTwice(name)
    plan = kept or ClusterPlan()
    port = plan.port if port is None else port
    named = {**plan.settings, **settings}.get("inter.broker.listener.name", "PLAINTEXT")
    # 0.0.0.0 does not listen on IPv6, and :: fails on a machine with IPv4 only.
    everywhere = "[::]" if host.startswith("[") else "0.0.0.0"
    addresses = (f"{named}://{everywhere}:{port}", f"{named}://{host}:{port}")
    return dict(zip(_LISTENERS, addresses, strict=True))
