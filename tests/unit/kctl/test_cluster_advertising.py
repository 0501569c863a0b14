"""`kctl cluster start --advertise HOST`: the listeners of each broker of a cluster."""

from __future__ import annotations

import pytest

from engine.cluster.plan import ClusterPlan, broker_settings, check_plan
from engine.errors import ConfigError
from kctl.arguments import UnreadableArgument
from kctl.commands.cluster.advertising import (
    AdvertisedTwice,
    PortOfListeners,
    advertised_settings,
    check_port,
)


@pytest.mark.parametrize(
    ("port", "kept", "wanted"),
    [
        (9300, None, 9300),
        (None, None, 9092),
        (None, ClusterPlan(port=9400), 9400),
        (9300, ClusterPlan(port=9400), 9300),
    ],
)
def test_each_broker_has_the_host_at_its_own_port(
    port: int | None, kept: ClusterPlan | None, wanted: int
) -> None:
    plan = ClusterPlan(3, settings=advertised_settings("kafka", port, kept, {}))
    check_plan(plan)
    for number, broker_id in enumerate(plan.broker_ids()):
        settings = broker_settings(plan, ["/"], broker_id)
        assert f"PLAINTEXT://0.0.0.0:{wanted + number}" == settings["listeners"]
        assert f"PLAINTEXT://kafka:{wanted + number}" == settings["advertised.listeners"]


def test_a_free_port_is_advertised_as_one() -> None:
    settings = advertised_settings("kafka", 0, None, {})
    assert ["PLAINTEXT://0.0.0.0:0", "PLAINTEXT://kafka:0"] == [*settings.values()]


def test_an_address_of_ipv6_has_a_listener_that_takes_it() -> None:
    settings = advertised_settings("[::1]", 9092, None, {})
    assert ["PLAINTEXT://[::]:9092", "PLAINTEXT://[::1]:9092"] == [*settings.values()]
    check_plan(ClusterPlan(2, settings=settings))


@pytest.mark.parametrize("kept", [ClusterPlan(), None])
def test_the_listener_has_the_name_that_brokers_use(kept: ClusterPlan | None) -> None:
    name = {"inter.broker.listener.name": "INSIDE"}
    if kept is not None:
        kept, name = kept._replace(settings=name), {}
    assert "INSIDE://kafka:1" == advertised_settings("kafka", 1, kept, name)["advertised.listeners"]


@pytest.mark.parametrize("name", ["listeners", "advertised.listeners"])
def test_other_listeners_are_refused_beside_it(name: str) -> None:
    with pytest.raises(AdvertisedTwice, match=name):
        advertised_settings("kafka", 1, None, {name: "PLAINTEXT://here:9092"})


@pytest.mark.parametrize("host", ["", "kafka:9092", "PLAINTEXT://kafka", "a b", "a,b", "::1"])
def test_what_is_no_host_is_refused(host: str) -> None:
    with pytest.raises(UnreadableArgument, match="host"):
        advertised_settings(host, 9092, None, {})


def test_nobody_is_sent_to_all_addresses() -> None:
    plan = ClusterPlan(settings=advertised_settings("0.0.0.0", 9092, None, {}))
    with pytest.raises(ConfigError, match=r"advertised\.listeners"):
        check_plan(plan)


@pytest.mark.parametrize("port", [None, 0, 9300, 9301])
def test_a_port_of_the_listeners_is_taken(port: int | None) -> None:
    set_ = {"listeners": "IN://127.0.0.1:9300, OUT://[::]:9301"}
    check_port(ClusterPlan(settings=set_), port)
    check_port(ClusterPlan(), port)


@pytest.mark.parametrize("port", [930, 9302, 1])
def test_a_port_that_no_listener_has_is_refused(port: int) -> None:
    set_ = {"listeners": "IN://127.0.0.1:9300,OUT://[::1]:9301"}
    with pytest.raises(PortOfListeners, match=r"they are set to IN://127.0.0.1:9300"):
        check_port(ClusterPlan(settings=set_), port)
