"""The check by the clock whether brokers lead what they are meant to lead."""

from __future__ import annotations

from engine.controller.leader_balance import PreferredLeadership, find_imbalanced_partitions
from engine.model import TopicPartition
from engine.znode.values import encode_partitions
from tests.unit.controller.cluster import TIMEOUT_MS, Cluster, now
from tests.unit.controller.replicas import Replicas, reassign

FIRST_MS = 5_000
PERIOD_MS = 300_000
T0 = TopicPartition("t", 0)
NODE = "/admin/preferred_replica_election"


def leaderships(preferred: int, *leaders: int) -> dict[TopicPartition, PreferredLeadership]:
    return {
        TopicPartition(f"of{preferred}", index): PreferredLeadership(preferred, leader, (1, 2, 3))
        for index, leader in enumerate(leaders)
    }


def chosen(
    known: dict[TopicPartition, PreferredLeadership], percentage: int, live: tuple[int, ...] = (1,)
) -> list[int]:
    found = find_imbalanced_partitions(known, lambda id_, _: id_ in live, percentage)
    return [partition.partition for partition in found]


def test_nothing_is_given_back_up_to_the_percentage_and_all_beyond_it() -> None:
    one_of_ten = leaderships(1, 2, *[1] * 9)
    assert [] == chosen(one_of_ten, 10)
    assert [0] == chosen(one_of_ten, 9)
    assert [0, 1] == chosen(leaderships(1, 2, 3, *[1] * 8), 10)


def test_each_broker_has_its_own_share() -> None:
    known = leaderships(1, *[1] * 9, 2) | leaderships(2, 1, 2)
    assert [0] == chosen(known, 10, live=(1, 2))


def test_a_broker_that_is_gone_or_out_of_sync_is_given_nothing() -> None:
    known = leaderships(1, 2, 2)
    assert [] == chosen(known, 0, live=())
    known[TopicPartition("of1", 0)] = PreferredLeadership(1, 2, (2, 3))
    assert [1] == chosen(known, 0)


def test_what_was_never_led_counts_as_well_led() -> None:
    known = leaderships(1, 2, *[1] * 8)
    assert [0] == chosen(known, 10)
    known[TopicPartition("new", 0)] = PreferredLeadership(1, -2, ())
    assert [] == chosen(known, 10)


# -- in a cluster ------------------------------------------------------------------------------


def returned(**properties: str) -> tuple[Cluster, Replicas]:
    """Return a cluster of which broker 2 was away: broker 1 leads in its place."""
    cluster = Cluster(3, **properties)
    told = Replicas(cluster)
    cluster.create_topic("t", (2, 1))
    cluster.kill(2)
    told.listen(cluster.start(2))
    told.settle()
    assert (1, (1, 2), 1) == cluster.leader_isr_epoch("t")
    return cluster, told


def pass_time(cluster: Cluster, duration_ms: int) -> None:
    for _ in range(0, duration_ms, 1000):
        cluster.clock.advance(1000)
        for node in cluster.nodes.values():
            node.client.heartbeat()
        cluster.settle()
    assert TIMEOUT_MS > 1000


def test_the_preferred_leader_leads_again_five_seconds_after_an_election() -> None:
    cluster, _ = returned()
    pass_time(cluster, FIRST_MS - 1000)
    assert 1 == cluster.state("t").leader
    pass_time(cluster, 1000)
    assert (2, (1, 2), 2) == cluster.leader_isr_epoch("t")


def test_it_is_checked_again_after_each_period() -> None:
    cluster, told = returned()
    pass_time(cluster, FIRST_MS)
    cluster.kill(2)
    told.listen(cluster.start(2))
    told.settle()
    pass_time(cluster, PERIOD_MS - 1000)
    assert 1 == cluster.state("t").leader
    pass_time(cluster, 1000)
    assert 2 == cluster.state("t").leader


def test_the_period_and_the_percentage_are_settings() -> None:
    cluster, told = returned(leader_imbalance_check_interval_seconds="7")
    pass_time(cluster, FIRST_MS)
    cluster.kill(2)
    told.listen(cluster.start(2))
    told.settle()
    pass_time(cluster, 7_000)
    assert 2 == cluster.state("t").leader
    cluster, _ = returned(leader_imbalance_per_broker_percentage="100")
    pass_time(cluster, FIRST_MS)
    assert 1 == cluster.state("t").leader


def test_nothing_is_given_back_if_it_is_switched_off() -> None:
    cluster, _ = returned(auto_leader_rebalance_enable="false")
    pass_time(cluster, FIRST_MS + PERIOD_MS)
    assert 1 == cluster.state("t").leader


def test_nothing_is_given_back_while_any_partition_moves() -> None:
    cluster, told = returned()
    cluster.create_topic("u", (1,))
    told.catch_up = False
    reassign(cluster, {TopicPartition("u", 0): (3,)})
    pass_time(cluster, FIRST_MS)
    assert 1 == cluster.state("t").leader
    told.propose(TopicPartition("u", 0), (1, 3))
    pass_time(cluster, PERIOD_MS)
    assert 2 == cluster.state("t").leader


def test_a_topic_that_waits_to_be_deleted_is_left_alone() -> None:
    cluster = Cluster(3)
    cluster.create_topic("d", (2, 3))
    cluster.kill(3)
    now(cluster.admin.create("/admin/delete_topics/d"))
    cluster.settle()
    assert {"d"} == cluster.controller.context.to_delete
    before = len(cluster.active.reporter.refusals)
    pass_time(cluster, FIRST_MS)
    assert before == len(cluster.active.reporter.refusals)


def test_a_controller_that_resigned_checks_no_more() -> None:
    cluster, told = returned()
    old = cluster.active
    now(cluster.admin.delete("/controller"))
    cluster.settle()
    told.settle()
    if old is cluster.active:
        assert 2 == old.controller.epoch
    pass_time(cluster, FIRST_MS)
    assert 2 == cluster.state("t").leader
    # One check of one controller: the epoch rose once.
    assert 2 == cluster.state("t").leader_epoch


# -- the old door ------------------------------------------------------------------------------


def test_the_old_node_lets_preferred_leaders_lead_and_goes() -> None:
    cluster, _ = returned()
    partitions = [T0, TopicPartition("x", 3)]
    now(cluster.admin.create(NODE, encode_partitions(partitions)))
    cluster.settle()
    assert (2, (1, 2), 2) == cluster.leader_isr_epoch("t")
    assert not cluster.exists(NODE)
    now(cluster.admin.create(NODE, encode_partitions(partitions)))
    cluster.settle()
    assert not cluster.exists(NODE)
    assert 2 == cluster.state("t").leader_epoch
    assert [] == cluster.failures()


def test_the_old_node_is_read_after_a_failover() -> None:
    cluster, _ = returned()
    now(cluster.admin.delete("/controller"))
    now(cluster.admin.create(NODE, encode_partitions([T0])))
    cluster.settle()
    assert 2 == cluster.state("t").leader
    assert not cluster.exists(NODE)


def test_an_old_node_that_nobody_understands_goes() -> None:
    cluster, _ = returned()
    now(cluster.admin.create(NODE, b"no json"))
    cluster.settle()
    assert not cluster.exists(NODE)
    assert ["ReplicaLeaderElection"] == [name for name, _ in cluster.failures()]
