"""What registrations of brokers say of where they listen."""

from __future__ import annotations

import pytest

from engine.controller.cluster_reader import parse_registration, read_brokers
from engine.host.coroutine import drive
from engine.host.memory import ManualClock
from engine.replication.metadata_cache import Endpoint
from engine.znode.embedded import EmbeddedZnodeClient
from engine.znode.json_text import InvalidZnodeValue
from engine.znode.memory_journal import MemoryJournal
from engine.znode.store import ZnodeStore
from engine.znode.values import BrokerRegistration

PATH = "/brokers/ids/7"


def registered(endpoint: str) -> BrokerRegistration:
    protocols = {"CLIENTS": "PLAINTEXT", "ODD": "CARRIER_PIGEON"}
    return BrokerRegistration((endpoint,), protocols, "here", 9092, 1, rack="r1")


@pytest.mark.parametrize(
    ("text", "host"), [("CLIENTS://here:9092", "here"), ("CLIENTS://[::1]:9092", "::1")]
)
def test_an_endpoint_has_a_listener_and_an_address(text: str, host: str) -> None:
    node = parse_registration(7, registered(text), PATH)
    assert (7, (Endpoint("CLIENTS", host, 9092, 0),), "r1") == node


@pytest.mark.parametrize(
    "text",
    [
        "CLIENTS:here:9092",
        "CLIENTS://here",
        "CLIENTS://9092",
        "CLIENTS://here:",
        "CLIENTS://here:port",
        "CLIENTS://here:٩",
        "CLIENTS://here:2147483648",
        "CLIENTS://here:" + "9" * 20,
        "ODD://here:9092",
        "UNKNOWN://here:9092",
    ],
)
def test_what_is_no_endpoint_is_refused(text: str) -> None:
    with pytest.raises(InvalidZnodeValue) as caught:
        parse_registration(7, registered(text), PATH)
    assert PATH in str(caught.value)


@pytest.mark.parametrize("name", ["9999999999", "2147483648", "-1", "x"])
def test_a_registration_by_what_is_no_id_is_refused(name: str) -> None:
    client = EmbeddedZnodeClient(ZnodeStore(MemoryJournal(), ManualClock()), 18_000)
    drive(client.connect()).result()
    for path in ("/brokers", "/brokers/ids", f"/brokers/ids/{name}"):
        drive(client.create(path, b"{}")).result()
    with pytest.raises(InvalidZnodeValue) as caught:
        drive(read_brokers(client)).result()
    assert f"/brokers/ids/{name}" in str(caught.value)
