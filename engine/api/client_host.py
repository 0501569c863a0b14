"""The address of a client, as Java prints it.

Access rules name hosts so, and groups keep the hosts of their members.
Source: InetAddress.getHostAddress.
"""

from __future__ import annotations

from ipaddress import IPv6Address


def host_of(peer: str) -> str:
    """Return the address of a peer, `1.2.3.4:5` or `[::1]:5`, without its port."""
    host, _, port = peer.rpartition(":")
    return _as_java(host.strip("[]") if port.isdigit() else peer)


def _as_java(address: str) -> str:
    """Return an address; of version 6 all eight numbers, none left out."""
    try:
        parsed = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    raw = parsed.packed
    return ":".join(f"{raw[at] << 8 | raw[at + 1]:x}" for at in range(0, len(raw), 2))
