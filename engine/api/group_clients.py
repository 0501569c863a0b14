"""The client of a member, in the form that its group stores.

Source: RequestContext.clientAddress, which prints as `/address`.
"""

from __future__ import annotations

from engine.api.exchange import Exchange
from engine.groups.member import ClientOfMember


def client_of(exchange: Exchange) -> ClientOfMember:
    """Return the client id and address of a request's client, as a group member has them.

    A missing client id is "null", as in Kafka.
    """
    client_id = exchange.client_id
    return ClientOfMember("null" if client_id is None else client_id, f"/{exchange.session.host}")
