"""The client of a member, as its group keeps it.

Source: RequestContext.clientAddress, which prints as `/address`.
"""

from __future__ import annotations

from ipaddress import IPv6Address

from engine.api.exchange import Exchange
from engine.groups.member import ClientOfMember


def client_of(exchange: Exchange) -> ClientOfMember:
    """Return the id and the address of a request's client."""
    host, _, port = exchange.session.peer.rpartition(":")
    address = _as_java(host.strip("[]") if port.isdigit() else exchange.session.peer)
    client_id = exchange.client_id
    return ClientOfMember("null" if client_id is None else client_id, f"/{address}")


def _as_java(address: str) -> str:
    """Return an address as Java prints it: of version 6 all eight numbers, none left out."""
    try:
        parsed = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    raw = parsed.packed
    return ":".join(f"{raw[at] << 8 | raw[at + 1]:x}" for at in range(0, len(raw), 2))
