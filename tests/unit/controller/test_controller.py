"""Whole traces of the controller against the embedded store."""

from __future__ import annotations

from tests.unit.controller.cluster import Cluster, now

GUARD = "check /controller_epoch"


def test_the_first_broker_is_elected_with_epoch_one() -> None:
    cluster = Cluster(1)
    assert cluster.controller.is_active
    assert (1, 1) == (cluster.controller.epoch, cluster.controller.controller_id)
    assert (b"1", 1) == (lambda r: (r[0], r[1].version))(
        now(cluster.admin.get("/controller_epoch"))
    )
    data, stat = now(cluster.admin.get("/controller"))
    assert b'{"version":2,"brokerid":1,"timestamp":"1000000","kraftControllerEpoch":-1}' == data
    assert stat.ephemeral_owner == cluster.nodes[1].client.session_id
    assert b'{"features":{},"version":2,"status":1}' == now(cluster.admin.get("/feature"))[0]
    assert [1] == cluster.nodes[1].reporter.epochs


def test_creation_writes_the_nodes_in_kafkas_order_and_in_one_transaction() -> None:
    cluster = Cluster(1)
    cluster.store.take()
    cluster.create_topic("t", (1,), (1,))
    root = "/brokers/topics/t"
    assert [
        ["create /config/topics/t"],
        [f"create {root}"],
        [
            GUARD,
            f"create {root}/partitions",
            f"create {root}/partitions/0",
            f"create {root}/partitions/1",
            f"create {root}/partitions/0/state",
            f"create {root}/partitions/1/state",
        ],
    ] == cluster.store.take()
    state = now(cluster.admin.get(f"{root}/partitions/0/state"))[0]
    assert b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1]}' == state
