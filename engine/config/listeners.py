"""Listeners: names, addresses and security protocols.

```
listeners                        NAME://host:port,NAME://[::1]:port     empty host: all addresses
listener.security.protocol.map   NAME:PROTOCOL,...
```

Source: SocketServerConfigs.listenerListToEndPoints, KafkaConfig.validateValues.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from engine.errors import ConfigError

_ENDPOINT = re.compile(r"([^:/]+)://(?:\[([0-9a-zA-Z:%._-]*)\]|([^:/\[\]]*)):(-?[0-9]{1,5})", re.A)
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_PORT_MAX = 65535
_ALL_ADDRESSES = "0.0.0.0"


class ListenerAddress(NamedTuple):
    """One listener; an empty host means all addresses."""

    name: str
    host: str
    port: int
    security_protocol: str

    @property
    def has_sasl(self) -> bool:
        """True if clients of the listener authenticate by SASL."""
        return self.security_protocol.startswith("SASL_")

    @property
    def has_tls(self) -> bool:
        """True if connections to the listener are encrypted."""
        return self.security_protocol.endswith("SSL")

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def parse_security_protocols(text: str) -> dict[str, str]:
    """Return the security protocol of each listener name; raises ConfigError.

    `text` is the value of `listener.security.protocol.map`.
    """
    key = "listener.security.protocol.map"
    protocols = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, separator, protocol = pair.rpartition(":")
        protocol = protocol.strip()
        if not separator or protocol.upper() not in _PROTOCOLS:
            rule = f"must be NAME:PROTOCOL of {', '.join(_PROTOCOLS)}"
            message = f"Invalid security protocol `{protocol}` defined in {key}"
            if not separator:
                message = unparsed_pair(key, pair)
            raise ConfigError(key, text, rule, kafka_message=message)
        protocols[name.strip().upper()] = protocol.upper()
    return protocols


def unparsed_pair(key: str, pair: str) -> str:
    """Return Kafka's message for an element without a colon in a list of pairs."""
    return f"Error parsing configuration property '{key}': begin 0, end -1, length {len(pair)}"


def parse_listeners(
    key: str, text: str, protocols: Mapping[str, str]
) -> tuple[ListenerAddress, ...]:
    """Return the addresses in a list of listeners, the value of `key`.

    Raises ConfigError if the list is malformed, names a listener twice or one without a protocol.
    """
    listeners: list[ListenerAddress] = []
    failed = f"Error creating broker listeners from '{text.strip()}'"
    for endpoint in filter(None, (part.strip() for part in text.split(","))):
        match = _ENDPOINT.fullmatch(endpoint)
        if match is None or int(match.group(4)) not in range(_PORT_MAX + 1):
            message = f"{failed}: Unable to parse {endpoint} to a broker endpoint"
            rule = f"{endpoint} is not NAME://host:port"
            raise ConfigError(key, text, rule, kafka_message=message)
        name = match.group(1).upper()
        if name not in protocols:
            message = f"{failed}: No security protocol defined for listener {name}"
            rule = f"{name} is not in listener.security.protocol.map"
            raise ConfigError(key, text, rule, kafka_message=message)
        host = match.group(2) if match.group(2) is not None else match.group(3)
        listeners.append(ListenerAddress(name, host, int(match.group(4)), protocols[name]))
    if not listeners:
        message = "requirement failed: There must be at least one broker advertised listener."
        raise ConfigError(key, text, "must name a listener", kafka_message=message)
    if len({listener.name for listener in listeners}) < len(listeners):
        raise ConfigError(key, text, "has one name twice")
    return tuple(listeners)


def advertised_listeners(
    text: str | None, bound: Sequence[ListenerAddress], protocols: Mapping[str, str]
) -> tuple[ListenerAddress, ...]:
    """Return the listeners that clients get; `text` None advertises the bound ones.

    Raises ConfigError unless each is bound under the same name, and has an address to which
    clients can connect.
    """
    key = "advertised.listeners"
    advertised = tuple(bound) if text is None else parse_listeners(key, text, protocols)
    bound_names = {listener.name for listener in bound}
    for listener in advertised:
        if listener.name not in bound_names:
            raise ConfigError(key, text, f"{listener.name} is not among the listeners")
        if listener.host == _ALL_ADDRESSES:
            message = (
                f"requirement failed: {key} cannot use the nonroutable meta-address "
                f"{_ALL_ADDRESSES}. Use a routable IP address."
            )
            if text is None:
                key, text = "listeners", ",".join(map(str, bound))
            rule = f"clients cannot connect to {_ALL_ADDRESSES}; set advertised.listeners"
            raise ConfigError(key, text, rule, kafka_message=message)
    ports = {listener.port for listener in bound if listener.port}
    if len(ports) < sum(1 for listener in bound if listener.port) and not _on_own_hosts(bound):
        raise ConfigError("listeners", ",".join(map(str, bound)), "has one port twice")
    return advertised


def inter_broker_listener(
    advertised: Sequence[ListenerAddress], name: str | None, protocol: str
) -> ListenerAddress:
    """Return the advertised listener for other brokers, by its name or else its protocol.

    Raises ConfigError if it is not advertised.
    """
    wanted = protocol if name is None else name.upper()
    for listener in advertised:
        if listener.name == wanted:
            return listener
    key = "security.inter.broker.protocol" if name is None else "inter.broker.listener.name"
    raise ConfigError(key, wanted, "is not among the advertised listeners")


def _on_own_hosts(listeners: Sequence[ListenerAddress]) -> bool:
    """Return True if each port is used once, or once on IPv4 and once on IPv6."""
    by_port: dict[int, list[str]] = {}
    for listener in listeners:
        by_port.setdefault(listener.port, []).append(listener.host)
    return all(
        len(hosts) == 1 or (len(hosts) == 2 and sum(":" in host for host in hosts) == 1)
        for port, hosts in by_port.items()
        if port
    )
