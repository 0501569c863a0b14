"""Whole traces of the controller against the embedded store."""

from __future__ import annotations

import pytest

from engine.controller.guarded_znodes import ControllerMoved
from engine.controller.request_batch import FULL_UPDATE
from engine.controller.states import PartitionPhase, ReplicaPhase
from engine.ids import uuid_bytes
from engine.model import TopicPartition
from engine.wire.structs import message_class
from engine.znode.paths import ISR_CHANGE_PREFIX, LOG_DIR_EVENT_PREFIX, broker_path
from engine.znode.values import (
    NO_LEADER,
    PartitionAssignment,
    TopicAssignment,
    decode_topic,
    encode_config,
    encode_log_dir_event,
    encode_partitions,
    encode_topic,
)
from tests.unit.controller.cluster import TIMEOUT_MS, Cluster, now

GUARD = "check /controller_epoch"
T0 = TopicPartition("t", 0)


def partitions_told(requests: list[tuple[int, str, object]]) -> list[tuple[int, str, int, int]]:
    """Return broker, topic, partition and leader of each state that was sent."""
    return [
        (broker_id, topic.topic_name, each.partition_index, each.leader)
        for broker_id, _, request in requests
        for topic in request.topic_states  # type: ignore[attr-defined]
        for each in topic.partition_states
    ]


# -- election ----------------------------------------------------------------------------------


def test_the_first_broker_is_elected_with_epoch_one() -> None:
    cluster = Cluster(1)
    assert cluster.controller.is_active
    assert (1, 1) == (cluster.controller.epoch, cluster.controller.controller_id)
    data, stat = now(cluster.admin.get("/controller_epoch"))
    assert (b"1", 1) == (data, stat.version)
    data, stat = now(cluster.admin.get("/controller"))
    assert b'{"version":2,"brokerid":1,"timestamp":"1000000","kraftControllerEpoch":-1}' == data
    assert stat.ephemeral_owner == cluster.nodes[1].client.session_id
    assert b'{"features":{},"version":2,"status":1}' == now(cluster.admin.get("/feature"))[0]
    assert [1] == cluster.nodes[1].reporter.epochs


def test_election_is_one_transaction_and_later_brokers_only_look() -> None:
    cluster = Cluster(3)
    written = [each for each in cluster.store.take() if "create /controller" in each]
    assert [["create /controller", "set /controller_epoch"]] == written
    assert [True, False, False] == [n.controller.is_active for n in cluster.nodes.values()]
    assert [1, 1, 1] == [n.controller.controller_id for n in cluster.nodes.values()]


def test_a_deleted_controller_node_forces_an_election() -> None:
    cluster = Cluster(2)
    now(cluster.admin.delete("/controller"))
    cluster.settle()
    assert 2 == cluster.controller.epoch
    assert [] == cluster.failures()


def test_a_controller_node_that_is_gone_before_anybody_looked_forces_an_election() -> None:
    cluster = Cluster(2)
    data, _ = now(cluster.admin.get("/controller"))
    # The watches fire for this, and what follows before they are set again tells nobody.
    now(cluster.admin.set("/controller", data))
    now(cluster.admin.delete("/controller"))
    cluster.settle()
    assert 2 == cluster.controller.epoch
    assert [] == cluster.failures()


@pytest.mark.parametrize("data", [b"not json", b'{"version":2}', b"", None])
def test_a_controller_node_that_cannot_be_read_counts_as_absent(data: bytes | None) -> None:
    cluster = Cluster(2)
    now(cluster.admin.set("/controller", data))
    cluster.settle()
    # ZN:resign; and nobody can create the node while it is there.
    assert [False, False] == [n.controller.is_active for n in cluster.nodes.values()]
    assert [-1, -1] == [n.controller.controller_id for n in cluster.nodes.values()]
    assert b"1" == now(cluster.admin.get("/controller_epoch"))[0]
    cluster.start(3)
    assert not cluster.nodes[3].controller.is_active
    now(cluster.admin.delete("/controller"))
    cluster.settle()
    assert 1 == sum(n.controller.is_active for n in cluster.nodes.values())
    assert 2 == cluster.controller.epoch


def test_another_broker_takes_over_when_the_controller_dies() -> None:
    cluster = Cluster(2)
    cluster.create_topic("t", (1, 2))
    cluster.create_topic("u", (2, 1))
    cluster.kill(1)
    assert (2, 2) == (cluster.active.broker_id, cluster.controller.epoch)
    # A leader that dies with the controller costs two epochs, a follower one.
    assert (2, (2,), 2) == cluster.leader_isr_epoch("t")
    assert (2, (2,), 1) == cluster.leader_isr_epoch("u")
    assert [] == cluster.failures()


def test_an_expired_session_resigns_and_stands_again() -> None:
    cluster = Cluster(1)
    node = cluster.nodes[1]
    cluster.create_topic("t", (1,))
    cluster.clock.advance(TIMEOUT_MS + 1)
    node.client.on_session = lambda event: None
    cluster.store.expire_sessions()
    node.controller.session_expired()
    cluster.settle()
    assert not node.controller.is_active
    assert set() == node.channel.open_ids
    now(cluster.admin.connect())
    node.register()
    node.controller.session_began()
    cluster.settle()
    assert (True, 2) == (node.controller.is_active, node.controller.epoch)
    assert [1, None, 2] == node.reporter.epochs
    assert (1, (1,), 0) == cluster.leader_isr_epoch("t")
    # The watches of the session before have gone with it.
    cluster.create_topic("u", (1,))
    assert (1, (1,), 0) == cluster.leader_isr_epoch("u")


def test_a_deposed_controller_writes_nothing_and_resigns() -> None:
    cluster = Cluster(2)
    old, new = cluster.nodes[1].controller, cluster.nodes[2].controller
    # The other broker is elected before the old one hears of it.
    old_queue = old._queue
    cluster.create_topic("t", (2,), settle=False)
    now(cluster.admin.delete("/controller"))
    now(new._try_to_become_controller())
    assert (2, 2) == (new.epoch, new.controller_id)
    assert old.is_active
    assert not old_queue.is_idle
    cluster.settle()
    assert not old.is_active
    assert [ControllerMoved] == [type(error) for _, error in cluster.failures()]
    assert 2 == cluster.state("t").controller_epoch
    assert [1, None] == cluster.nodes[1].reporter.epochs
    assert set() == cluster.nodes[1].channel.open_ids


def test_a_failed_takeover_frees_the_office_and_is_tried_again_later() -> None:
    cluster = Cluster(1)
    now(cluster.admin.create("/brokers/ids/9", b"no json"))
    now(cluster.admin.delete("/controller"))
    cluster.settle()
    node = cluster.nodes[1]
    assert not node.controller.is_active
    assert not cluster.exists("/controller")
    assert {"Failover", "BrokerChange"} == {name for name, _ in cluster.failures()}
    now(cluster.admin.delete("/brokers/ids/9"))
    cluster.clock.advance(500)
    cluster.settle()
    assert node.controller.is_active


def test_stopping_forgets_everything_and_takes_no_more_requests() -> None:
    cluster = Cluster(1)
    node = cluster.nodes[1]
    node.controller.stop()
    assert (False, -1) == (node.controller.is_active, node.controller.controller_id)
    replies: list[object] = []
    node.controller.allocate_producer_ids(
        message_class("AllocateProducerIdsRequest")(broker_id=1)
    ).then(replies.append)
    assert [message_class("AllocateProducerIdsResponse")(error_code=41)] == replies


# -- topics ------------------------------------------------------------------------------------


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


def test_creation_sends_orders_to_the_live_replicas_and_then_to_all_brokers() -> None:
    cluster = Cluster(3)
    cluster.active.channel.take()
    cluster.create_topic("t", (3, 2, 9))
    sent = cluster.active.channel.take()
    assert [
        (3, "LeaderAndIsrRequest"),
        (2, "LeaderAndIsrRequest"),
        (1, "UpdateMetadataRequest"),
        (2, "UpdateMetadataRequest"),
        (3, "UpdateMetadataRequest"),
    ] == [(broker_id, name) for broker_id, name, _ in sent]
    request = sent[0][2]
    assert (1, 1) == (request.controller_id, request.controller_epoch)
    assert now(cluster.admin.exists(broker_path(3))).czxid == request.broker_epoch  # type: ignore[union-attr]
    (topic,) = request.topic_states
    assert cluster.controller.topic_name(topic.topic_id) == topic.topic_name == "t"
    (state,) = topic.partition_states
    assert (3, [3, 2], [3, 2, 9], True) == (state.leader, state.isr, state.replicas, state.is_new)
    assert [("localhost", 9095)] == [(e.host_name, e.port) for e in request.live_leaders]
    metadata = sent[2][2]
    assert [1, 2, 3] == [broker.id for broker in metadata.live_brokers]
    (state,) = metadata.topic_states[0].partition_states
    assert (3, [9], 0) == (state.leader, state.offline_replicas, state.zk_version)


def test_a_topic_without_a_live_replica_stays_new_until_one_comes() -> None:
    cluster = Cluster(1)
    cluster.create_topic("t", (2,))
    assert not cluster.exists("/brokers/topics/t/partitions")
    assert PartitionPhase.NEW is cluster.controller.context.partition_phases[T0]
    assert [("t-0", "online")] == [each[:2] for each in cluster.active.reporter.refusals]
    cluster.start(2)
    assert (2, (2,), 0) == cluster.leader_isr_epoch("t")


@pytest.mark.parametrize(
    "data", [b"no json", None, b'{"version":3,"partitions":{"0":[1]},"topic_id":"short"}']
)
def test_a_topic_that_nobody_understands_does_not_stop_the_others(data: bytes | None) -> None:
    cluster = Cluster(1)
    now(cluster.admin.create("/brokers/topics/bad", data))
    cluster.create_topic("t", (1,))
    now(cluster.admin.delete("/controller"))
    cluster.settle()
    cluster.create_topic("u", (1,))
    assert (1, (1,), 0) == cluster.leader_isr_epoch("t") == cluster.leader_isr_epoch("u")
    assert {"Topic(bad)"} == {name for name, _ in cluster.failures()}
    assert ["t", "u"] == sorted(cluster.controller.context.topics)


def test_a_state_that_nobody_understands_stops_its_partition_alone() -> None:
    cluster = Cluster(1)
    cluster.create_topic("t", (1,), (1,))
    path = "/brokers/topics/t/partitions/0/state"
    now(cluster.admin.set(path, b"no json"))
    now(cluster.admin.delete("/controller"))
    cluster.settle()
    assert cluster.controller.is_active
    assert b"no json" == now(cluster.admin.get(path))[0]
    assert {TopicPartition("t", 1)} == set(cluster.controller.context.leaderships)
    assert [("t-0", "online")] == [each[:2] for each in cluster.active.reporter.refusals]


def test_a_broker_of_the_highest_id_is_a_broker() -> None:
    cluster = Cluster(1)
    cluster.start(2_147_483_647)
    assert [] == cluster.failures()
    assert [1, 2_147_483_647] == cluster.controller.context.live_ids()


@pytest.mark.parametrize("name", ["seven", "99999999999", "-1"])
def test_a_registration_that_is_no_brokers_is_reported(name: str) -> None:
    cluster = Cluster(1)
    now(cluster.admin.create(f"/brokers/ids/{name}", b"{}"))
    cluster.settle()
    assert ["BrokerChange"] == [event for event, _ in cluster.failures()]
    assert [1] == cluster.controller.context.live_ids()


def test_added_partitions_are_created_and_old_ones_left_alone() -> None:
    cluster = Cluster(1)
    cluster.create_topic("t", (1,))
    data, _ = now(cluster.admin.get("/brokers/topics/t"))
    stored = decode_topic(data, "/brokers/topics/t")
    grown = {**stored.partitions, 1: PartitionAssignment((1,)), 2: PartitionAssignment((1,))}
    cluster.store.take()
    now(cluster.admin.set("/brokers/topics/t", encode_topic(stored._replace(partitions=grown))))
    cluster.settle()
    root = "/brokers/topics/t/partitions"
    assert [
        ["set /brokers/topics/t"],
        [
            GUARD,
            *(f"create {root}/{p}" for p in (1, 2)),
            *(f"create {root}/{p}/state" for p in (1, 2)),
        ],
    ] == cluster.store.take()
    assert 0 == now(cluster.admin.get(f"{root}/0/state"))[1].version


def test_nodes_that_are_there_already_do_not_stop_a_creation() -> None:
    cluster = Cluster(1)
    cluster.create_topic("t", (1,), (1,), settle=False)
    root = "/brokers/topics/t/partitions"
    for path in (root, f"{root}/0"):
        now(cluster.admin.create(path))
    cluster.settle()
    assert (1, (1,), 0) == cluster.leader_isr_epoch("t", 0) == cluster.leader_isr_epoch("t", 1)
    assert [] == cluster.failures()


def test_a_topic_without_an_id_is_given_one() -> None:
    cluster = Cluster(1)
    now(cluster.admin.create("/config/topics/t", encode_config({})))
    old = b'{"version":1,"partitions":{"0":[1]}}'
    now(cluster.admin.create("/brokers/topics/t", old))
    cluster.settle()
    data, stat = now(cluster.admin.get("/brokers/topics/t"))
    topic_id = decode_topic(data, "").topic_id
    assert topic_id is not None
    assert ("t", 1) == (cluster.controller.topic_name(uuid_bytes(topic_id)), stat.version)
    assert (1, (1,), 0) == cluster.leader_isr_epoch("t")


def test_a_topic_that_other_hands_removed_is_forgotten() -> None:
    cluster = Cluster(1)
    cluster.create_topic("t", (1,))
    for path in ("partitions/0/state", "partitions/0", "partitions"):
        now(cluster.admin.delete(f"/brokers/topics/t/{path}"))
    now(cluster.admin.delete("/brokers/topics/t"))
    now(cluster.admin.delete("/config/topics/t"))
    cluster.settle()
    assert {} == cluster.controller.context.topics
    assert {} == cluster.controller.context.replica_phases
    cluster.create_topic("t", (1,))
    assert (1, (1,), 0) == cluster.leader_isr_epoch("t")


# -- brokers -----------------------------------------------------------------------------------


def test_the_leader_of_a_dead_broker_moves_in_one_write() -> None:
    cluster = Cluster(3)
    cluster.create_topic("t", (3, 2, 1))
    cluster.create_topic("u", (2, 3))
    cluster.store.take()
    cluster.kill(3)
    assert (2, (2, 1), 1) == cluster.leader_isr_epoch("t")
    assert (2, (2,), 1) == cluster.leader_isr_epoch("u")
    state = "/brokers/topics/{}/partitions/0/state"
    assert [[GUARD, f"set {state.format('t')}"], [GUARD, f"set {state.format('u')}"]] == [
        each for each in cluster.store.take() if each[0] == GUARD
    ]
    assert {1, 2} == cluster.active.channel.open_ids


def test_assignment_order_decides_and_not_isr_order() -> None:
    cluster = Cluster(3)
    cluster.create_topic("t", (1, 2, 3))
    cluster.controller.context.is_live(1)
    now(
        cluster.admin.set(
            "/brokers/topics/t/partitions/0/state",
            b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1,3,2]}',
        )
    )
    cluster.kill(1)
    assert (2, (3, 2), 2) == cluster.leader_isr_epoch("t")


def test_the_last_isr_member_stays_and_leads_again_when_it_returns() -> None:
    cluster = Cluster(2)
    cluster.create_topic("t", (2,))
    cluster.kill(2)
    assert (NO_LEADER, (2,), 1) == cluster.leader_isr_epoch("t")
    assert 1 == cluster.controller.context.offline_partition_count()
    cluster.start(2)
    assert (2, (2,), 2) == cluster.leader_isr_epoch("t")
    assert 0 == cluster.controller.context.offline_partition_count()


def test_an_unclean_leader_is_elected_only_where_the_topic_allows_it() -> None:
    cluster = Cluster(3)
    cluster.create_topic("t", (2, 3))
    cluster.create_topic("u", (2, 3))
    now(
        cluster.admin.set(
            "/config/topics/u", encode_config({"unclean.leader.election.enable": "true"})
        )
    )
    cluster.kill(3)
    cluster.kill(2)
    cluster.start(3)
    assert (NO_LEADER, (2,)) == cluster.leader_isr_epoch("t")[:2]
    assert (3, (3,)) == cluster.leader_isr_epoch("u")[:2]
    assert 1 == cluster.state("u").leader_recovery_state
    assert 1 == cluster.controller.context.unclean_elections
    cluster.nodes[1].settings = cluster.nodes[1].settings.with_dynamic(
        {}, {"unclean.leader.election.enable": "true"}
    )
    cluster.controller.elect_after_setting_change()
    cluster.settle()
    assert (3, (3,)) == cluster.leader_isr_epoch("t")[:2]


def test_a_new_broker_gets_everything_and_the_others_get_the_broker() -> None:
    cluster = Cluster(1)
    cluster.create_topic("t", (1,))
    cluster.active.channel.take()
    cluster.start(2)
    sent = cluster.active.channel.take("UpdateMetadataRequest")
    assert [1, 2] == [broker_id for broker_id, _, _ in sent]
    assert [(2, "t", 0, 1)] == partitions_told(sent)
    assert all([1, 2] == [b.id for b in request.live_brokers] for _, _, request in sent)
    # Who comes back may know of topics that went meanwhile.
    assert [0, FULL_UPDATE] == [request.type for _, _, request in sent]


def test_a_new_controller_says_what_there_is_and_that_there_is_nothing_else() -> None:
    cluster = Cluster(2)
    cluster.create_topic("t", (1, 2))
    for node in cluster.nodes.values():
        node.channel.take()
    now(cluster.admin.delete("/controller"))
    cluster.settle()
    sent = cluster.active.channel.take("UpdateMetadataRequest")
    full = [each for each in sent if each[2].type == FULL_UPDATE]
    assert [(1, "t", 0, 1), (2, "t", 0, 1)] == partitions_told(full)


def test_a_bounced_broker_is_dead_first_and_then_new() -> None:
    cluster = Cluster(2)
    cluster.create_topic("t", (2, 1))
    node = cluster.nodes[2]
    first_epoch = cluster.controller.context.live_brokers[2].epoch
    now(node.client.close())
    node.register()
    cluster.settle()
    assert cluster.controller.context.live_brokers[2].epoch > first_epoch
    assert (1, (1,), 1) == cluster.leader_isr_epoch("t")
    told = partitions_told(cluster.active.channel.take("LeaderAndIsrRequest"))
    assert (2, "t", 0, 1) == told[-1]


def test_a_broker_that_listens_elsewhere_is_announced_to_all() -> None:
    cluster = Cluster(2)
    cluster.active.channel.take()
    path = broker_path(2)
    data = now(cluster.admin.get(path))[0] or b""
    for port in (b"9999", b"9998"):
        now(cluster.admin.set(path, data.replace(b"9094", port)))
        cluster.settle()
        sent = cluster.active.channel.take()
        assert [1, 2] == [broker_id for broker_id, _, _ in sent]
        endpoints = [each.endpoints[0].port for each in sent[0][2].live_brokers]
        assert [9093, int(port)] == endpoints
    now(cluster.admin.set(path, data.replace(b"9094", b"9998")))
    cluster.settle()
    assert [] == cluster.active.channel.take()


def test_a_replica_that_cannot_be_read_is_replaced() -> None:
    cluster = Cluster(2)
    cluster.create_topic("t", (1, 2))
    channel = cluster.active.channel
    channel.errors[1, T0] = 56
    now(cluster.admin.create(LOG_DIR_EVENT_PREFIX, encode_log_dir_event(1), sequential=True))
    cluster.settle()
    assert (2, (2,), 1) == cluster.leader_isr_epoch("t")
    assert {T0} == cluster.controller.context.offline_replicas[1]
    assert [] == cluster.children("/log_dir_event_notification")
    assert [] == cluster.failures()


def test_what_a_broker_could_not_read_is_forgotten_when_it_dies() -> None:
    cluster = Cluster(2)
    cluster.create_topic("t", (2, 1))
    cluster.active.channel.errors[2, T0] = 56
    now(cluster.admin.create(LOG_DIR_EVENT_PREFIX, encode_log_dir_event(2), sequential=True))
    cluster.settle()
    assert {T0} == cluster.controller.context.offline_replicas[2]
    cluster.kill(2)
    assert 2 not in cluster.controller.context.offline_replicas


def test_an_answer_of_a_broker_that_is_gone_or_refuses_all_is_passed_over() -> None:
    cluster = Cluster(2)
    cluster.create_topic("t", (2, 1))
    response = message_class("LeaderAndIsrResponse")
    errors = [response.LeaderAndIsrPartitionError(partition_index=0, error_code=56)]
    topic_id = cluster.controller.context.topic_ids["t"]
    topics = [response.LeaderAndIsrTopicError(topic_id=topic_id, partition_errors=errors)]
    for broker_id, error_code in ((9, 0), (2, 41)):
        answer = response(error_code=error_code, topics=topics)
        now(cluster.controller._brokers.on_leader_and_isr_response(broker_id, answer))
    assert not any(cluster.controller.context.offline_replicas.values())


def test_isr_changes_of_old_brokers_are_read_forwarded_and_removed() -> None:
    cluster = Cluster(2)
    cluster.create_topic("t", (1, 2))
    cluster.active.channel.take()
    now(
        cluster.admin.set(
            "/brokers/topics/t/partitions/0/state",
            b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1]}',
        )
    )
    now(cluster.admin.create(ISR_CHANGE_PREFIX, encode_partitions([T0]), sequential=True))
    cluster.settle()
    sent = cluster.active.channel.take("UpdateMetadataRequest")
    assert [(1, "t", 0, 1), (2, "t", 0, 1)] == partitions_told(sent)
    assert (1,) == cluster.controller.context.leaderships[T0].state.isr
    assert [] == cluster.children("/isr_change_notification")


# -- deletion ----------------------------------------------------------------------------------


def delete(cluster: Cluster, topic: str) -> None:
    now(cluster.admin.create(f"/admin/delete_topics/{topic}"))
    cluster.settle()


def test_deletion_leaves_nothing_and_notifies_brokers_first() -> None:
    cluster = Cluster(2)
    cluster.create_topic("t", (1, 2), (2, 1))
    cluster.active.channel.take()
    cluster.store.take()
    delete(cluster, "t")
    assert not cluster.exists("/brokers/topics/t")
    assert not cluster.exists("/config/topics/t")
    assert [] == cluster.children("/admin/delete_topics")
    context = cluster.controller.context
    assert ({}, {}, set()) == (context.topics, context.topic_names, context.to_delete)
    assert (set(), set()) == (context.deletion_started, context.ineligible_for_deletion)
    sent = cluster.active.channel.take()
    assert "UpdateMetadataRequest" == sent[0][1]
    assert {-2} == {leader for *_, leader in partitions_told(sent[:2])}
    stops = [(b, r) for b, name, r in sent if name == "StopReplicaRequest"]
    assert [False, False, True, True] == [
        r.topic_states[0].partition_states[0].delete_partition for _, r in stops
    ]
    assert {-2} == {r.topic_states[0].partition_states[0].leader_epoch for _, r in stops}
    root = "/brokers/topics/t"
    assert [
        GUARD,
        f"delete {root}/partitions/0/state",
        f"delete {root}/partitions/0",
        f"delete {root}/partitions/1/state",
        f"delete {root}/partitions/1",
        f"delete {root}/partitions",
        f"delete {root}",
        "delete /config/topics/t",
        "delete /admin/delete_topics/t",
    ] == cluster.store.take()[-1]
    cluster.create_topic("t", (1, 2))
    assert (1, (1, 2), 0) == cluster.leader_isr_epoch("t")
    assert [] == cluster.failures()
    assert [] == cluster.active.reporter.refusals


def test_isr_shrinks_while_a_topic_goes_but_is_never_empty() -> None:
    cluster = Cluster(2)
    cluster.create_topic("t", (1, 2))
    cluster.active.channel.silent = {1, 2}
    delete(cluster, "t")
    assert (NO_LEADER, (2,), 2) == cluster.leader_isr_epoch("t")


def test_an_unknown_topic_only_loses_its_request() -> None:
    cluster = Cluster(1)
    delete(cluster, "nothing")
    assert [] == cluster.children("/admin/delete_topics")
    assert [] == cluster.failures()


def test_requests_are_thrown_away_where_deletion_is_disabled() -> None:
    cluster = Cluster(1, delete_topic_enable="false")
    cluster.create_topic("t", (1,))
    delete(cluster, "t")
    assert [] == cluster.children("/admin/delete_topics")
    assert (1, (1,), 0) == cluster.leader_isr_epoch("t")
    assert not cluster.controller.is_queued_for_deletion("t")
    now(cluster.admin.create("/admin/delete_topics/t"))
    now(cluster.admin.delete("/controller"))
    cluster.settle()
    assert [] == cluster.children("/admin/delete_topics")


def test_deletion_waits_for_a_dead_broker() -> None:
    cluster = Cluster(2)
    cluster.create_topic("t", (1, 2))
    cluster.kill(2)
    delete(cluster, "t")
    context = cluster.controller.context
    assert cluster.controller.is_queued_for_deletion("t")
    assert cluster.exists("/brokers/topics/t")
    assert {"t"} == context.ineligible_for_deletion
    # It is tried again as one that is off, when it is back.
    (waiting,) = context.replicas_in_phase("t", ReplicaPhase.OFFLINE)
    assert 2 == waiting.broker_id
    cluster.start(2)
    assert not cluster.exists("/brokers/topics/t")
    assert [] == cluster.failures()


def test_deletion_goes_on_after_a_replica_could_not_be_deleted() -> None:
    cluster = Cluster(2)
    cluster.create_topic("t", (1, 2))
    cluster.active.channel.errors[2, T0] = 56
    delete(cluster, "t")
    assert cluster.exists("/brokers/topics/t")
    cluster.active.channel.errors.clear()
    now(cluster.nodes[2].client.close())
    cluster.settle()
    cluster.nodes[2].register()
    cluster.settle()
    assert not cluster.exists("/brokers/topics/t")


def test_a_new_controller_ends_a_deletion_that_was_begun() -> None:
    cluster = Cluster(2)
    cluster.create_topic("t", (1, 2))
    cluster.active.channel.silent = {1, 2}
    delete(cluster, "t")
    assert cluster.exists("/brokers/topics/t")
    now(cluster.admin.delete("/controller"))
    cluster.nodes[1].channel.silent = set()
    cluster.settle()
    assert 2 == cluster.controller.epoch
    assert not cluster.exists("/brokers/topics/t")
    assert [] == cluster.children("/admin/delete_topics")
    assert [] == cluster.failures()


def test_partitions_added_to_a_topic_that_goes_are_taken_back() -> None:
    cluster = Cluster(1)
    cluster.create_topic("t", (1,))
    cluster.active.channel.silent = {1}
    delete(cluster, "t")
    data, _ = now(cluster.admin.get("/brokers/topics/t"))
    stored = decode_topic(data, "")
    grown = {**stored.partitions, 1: PartitionAssignment((1,))}
    now(cluster.admin.set("/brokers/topics/t", encode_topic(stored._replace(partitions=grown))))
    cluster.settle()
    after = decode_topic(now(cluster.admin.get("/brokers/topics/t"))[0], "")
    assert TopicAssignment(stored.topic_id, {0: PartitionAssignment((1,))}) == after


@pytest.mark.parametrize("brokers", [1, 3])
def test_a_restart_changes_nothing_that_is_well(brokers: int) -> None:
    cluster = Cluster(brokers)
    for index in range(20):
        cluster.create_topic(f"t{index}", (index % brokers + 1,))
    before = [cluster.state(f"t{index}") for index in range(20)]
    now(cluster.admin.delete("/controller"))
    cluster.settle()
    assert before == [cluster.state(f"t{index}") for index in range(20)]
    assert [] == cluster.failures()
