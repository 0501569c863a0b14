"""The client of a member as Kafka prints it."""

from __future__ import annotations

import pytest

from engine.api.admission import Session, allow_all
from engine.api.exchange import Exchange
from engine.api.group_clients import client_of


@pytest.mark.parametrize(
    ("peer", "host"),
    [
        ("1.2.3.4:5", "/1.2.3.4"),
        ("[::1]:5", "/0:0:0:0:0:0:0:1"),
        ("::1:5000", "/0:0:0:0:0:0:0:1"),
        ("::ffff:1.2.3.4:5", "/1.2.3.4"),
        ("[fe80::a0:1%eth0]:5", "/fe80:0:0:0:0:0:a0:1"),
        ("somewhere", "/somewhere"),
    ],
)
def test_an_address_is_that_of_java(peer: str, host: str) -> None:
    exchange = Exchange(Session(peer, allow_all()), 11, 0, 1, "app", 0)
    assert ("app", host) == client_of(exchange)


def test_a_client_without_an_id_is_called_null() -> None:
    exchange = Exchange(Session("1.2.3.4:5", allow_all()), 11, 0, 1, None, 0)
    assert "null" == client_of(exchange).client_id
