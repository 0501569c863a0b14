"""The client of a member, as its group keeps it.

Source: RequestContext.clientAddress, which prints as `/address`.
"""

from __future__ import annotations

from engine.api.exchange import Exchange
from engine.groups.member import ClientOfMember


def client_of(exchange: Exchange) -> ClientOfMember:
    """Return the id and the address of a request's client."""
    client_id = exchange.client_id
    return ClientOfMember("null" if client_id is None else client_id, f"/{exchange.session.host}")
