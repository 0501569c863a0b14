"""The address of a client, as Java prints it.

Access rules name hosts so, and groups keep the hosts of their members.
Source: InetAddress.getHostAddress.
"""

from __future__ import annotations

from engine.java_text import format_java_address


def host_of(peer: str) -> str:
    """Return the address of a peer, `1.2.3.4:5` or `[::1]:5`, without its port."""
    host, _, port = peer.rpartition(":")
    return format_java_address(host.strip("[]") if port.isdigit() else peer)
