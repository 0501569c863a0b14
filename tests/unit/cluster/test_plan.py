"""What a plan says of its brokers."""

from __future__ import annotations

import pytest

from engine.cluster.plan import ClusterPlan, broker_settings, check_plan, unauthenticated_listeners
from engine.errors import ConfigError


def test_what_a_plan_sets_counts_before_what_is_fast() -> None:
    plan = ClusterPlan(port=9100, settings={"offsets.topic.replication.factor": "2"})
    settings = broker_settings(plan, ["/data/broker-1"], 1)
    assert settings["listeners"] == "PLAINTEXT://127.0.0.1:9100"
    assert settings["log.dirs"] == "/data/broker-1"
    assert settings["offsets.topic.replication.factor"] == "2"
    assert settings["transaction.state.log.replication.factor"] == "1"


def test_a_broker_has_all_its_log_directories() -> None:
    plan = ClusterPlan(broker_count=2, log_dir_count=2)
    assert "/a,/b" == broker_settings(plan, ["/a", "/b"], 1)["log.dirs"]
    assert [] == check_plan(plan)
    for name in ("log.dirs", "log.dir"):
        with pytest.raises(ConfigError, match="--log-dirs gives each broker its own"):
            check_plan(ClusterPlan(settings={name: "/a"}, log_dir_count=2))


def test_any_free_port_stays_any() -> None:
    plan = ClusterPlan(port=0)
    assert broker_settings(plan, ["/"], 1)["listeners"] == "PLAINTEXT://127.0.0.1:0"


def test_settings_that_no_broker_knows_are_reported() -> None:
    assert check_plan(ClusterPlan(settings={"num.partition": "3"})) == ["num.partition"]


def test_settings_with_bad_values_are_refused() -> None:
    with pytest.raises(ConfigError):
        check_plan(ClusterPlan(settings={"num.partitions": "few"}))


def test_a_store_elsewhere_is_refused() -> None:
    with pytest.raises(ConfigError, match="kctl broker run"):
        check_plan(ClusterPlan(settings={"zookeeper.connect": "there:2181"}))


def test_what_each_broker_has_of_its_own_is_not_set_for_all() -> None:
    settings = {"log.dirs": "/elsewhere"}
    assert check_plan(ClusterPlan(settings=settings)) == []
    with pytest.raises(ConfigError, match="each of 3 brokers"):
        check_plan(ClusterPlan(broker_count=3, settings=settings))


def test_several_brokers_listen_one_port_after_the_other() -> None:
    plan = ClusterPlan(broker_count=3, port=9100)
    assert check_plan(plan) == []
    listeners = [broker_settings(plan, ["/"], id_)["listeners"] for id_ in plan.broker_ids()]
    assert [f"PLAINTEXT://127.0.0.1:{port}" for port in (9100, 9101, 9102)] == listeners


def test_listeners_that_are_set_are_those_of_the_first_broker() -> None:
    settings = {
        "listeners": "CLIENTS://127.0.0.1:9092,BROKERS://[::1]:9192,FREE://localhost:0",
        "advertised.listeners": "CLIENTS://here:19092,BROKERS://[::1]:9192,FREE://localhost:0",
        "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT,FREE:PLAINTEXT",
        "inter.broker.listener.name": "BROKERS",
    }
    plan = ClusterPlan(broker_count=3, settings=settings)
    assert check_plan(plan) == []
    third = broker_settings(plan, ["/x"], 3)
    assert third["listeners"] == "CLIENTS://127.0.0.1:9094,BROKERS://[::1]:9194,FREE://localhost:0"
    assert third["advertised.listeners"].startswith("CLIENTS://here:19094,BROKERS://[::1]:9194,")
    close = {**settings, "listeners": settings["listeners"].replace("9192", "9093")}
    with pytest.raises(ConfigError, match="leave room between them"):
        check_plan(plan._replace(settings=close))


#: Anybody can make the tokens that a listener of these believes.
_UNSECURED = {"sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER"}
_CALLBACKS = "listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class"
_SIGNED = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
_URL = "sasl.oauthbearer.jwks.endpoint.url"


@pytest.mark.parametrize(
    ("listeners", "settings", "is_open"),
    [
        ("PLAINTEXT://127.0.0.1:9092", {}, False),
        ("PLAINTEXT://localhost:9092,SSL://[::1]:9093", {}, False),
        ("PLAINTEXT://:9092", {}, True),
        ("PLAINTEXT://kafka1:9092", {}, True),
        ("SSL://:9092", {}, True),
        ("SSL://:9092", {"ssl.client.auth": "requested"}, True),
        ("SSL://:9092", {"listener.name.ssl.ssl.client.auth": "required"}, False),
        ("SASL_PLAINTEXT://:9092", {"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256"}, False),
        ("SASL_PLAINTEXT://127.0.0.1:9092", _UNSECURED, False),
        ("SASL_PLAINTEXT://:9092", _UNSECURED, True),
        ("SASL_PLAINTEXT://:9092", {**_UNSECURED, _CALLBACKS: _SIGNED, _URL: "file:/k"}, False),
        ("SASL_SSL://:9092", {**_UNSECURED, "ssl.client.auth": "required"}, True),
        (
            "SASL_SSL://:9092",
            {**_UNSECURED, "listener.name.sasl_ssl.ssl.client.auth": "required"},
            False,
        ),
    ],
)
def test_a_listener_for_other_machines_without_authentication_is_open(
    listeners: str, settings: dict[str, str], *, is_open: bool
) -> None:
    static = {
        "listeners": listeners,
        "advertised.listeners": listeners.replace("//:", "//here:"),
        "inter.broker.listener.name": listeners.partition(":")[0],
        **settings,
    }
    assert is_open is bool(unauthenticated_listeners(static))


def test_racks_are_given_in_turn() -> None:
    plan = ClusterPlan(broker_count=3, racks=("a", "b"))
    racks = [broker_settings(plan, ["/"], id_)["broker.rack"] for id_ in plan.broker_ids()]
    assert ["a", "b", "a"] == racks
    assert "broker.rack" not in broker_settings(ClusterPlan(), ["/"], 1)


def test_a_rack_for_all_and_one_for_each_do_not_go_together() -> None:
    plan = ClusterPlan(racks=("a",), settings={"broker.rack": "b"})
    with pytest.raises(ConfigError, match="--racks gives each broker its own"):
        check_plan(plan)


def test_an_open_port_is_the_one_of_the_last_time() -> None:
    plan = ClusterPlan(port=0)
    assert broker_settings(plan, ["/"], 1, 4711)["listeners"] == "PLAINTEXT://127.0.0.1:4711"
    fixed = plan._replace(port=9092)
    assert broker_settings(fixed, ["/"], 2, 4711)["listeners"] == "PLAINTEXT://127.0.0.1:9093"


def test_no_id_is_given_twice() -> None:
    plan, added = ClusterPlan(broker_count=2).with_one_more()
    assert (3, [1, 2, 3]) == (added, plan.broker_ids())
    plan, added = plan.without(3).without(1).with_one_more()
    assert (4, [2, 4]) == (added, plan.broker_ids())
