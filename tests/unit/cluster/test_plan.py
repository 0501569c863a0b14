"""What a plan says of its brokers."""

from __future__ import annotations

import pytest

from engine.cluster.plan import ClusterPlan, broker_settings, check_plan
from engine.errors import ConfigError


def test_what_a_plan_sets_counts_before_what_is_usual() -> None:
    plan = ClusterPlan(port=9100, settings={"offsets.topic.replication.factor": "2"})
    settings = broker_settings(plan, "/data/broker-1", 1)
    assert settings["listeners"] == "PLAINTEXT://127.0.0.1:9100"
    assert settings["log.dirs"] == "/data/broker-1"
    assert settings["offsets.topic.replication.factor"] == "2"
    assert settings["transaction.state.log.replication.factor"] == "1"


def test_any_free_port_stays_any() -> None:
    plan = ClusterPlan(port=0)
    assert broker_settings(plan, "/", 1)["listeners"] == "PLAINTEXT://127.0.0.1:0"


def test_settings_that_no_broker_knows_are_told() -> None:
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
    listeners = [broker_settings(plan, "/", id_)["listeners"] for id_ in plan.broker_ids()]
    assert [f"PLAINTEXT://127.0.0.1:{port}" for port in (9100, 9101, 9102)] == listeners
