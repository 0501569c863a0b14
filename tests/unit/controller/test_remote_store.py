"""The controller over a store that answers later, and one whose answers are lost."""

from __future__ import annotations

from typing import Any

import pytest

from engine.wire.structs import message_class
from engine.znode.errors import ZnodeConnectionLost
from tests.unit.controller.cluster import Cluster, now


def live(cluster: Cluster) -> dict[str, Any]:
    """Let a cluster live through everything; returns all that is stored in the end."""
    cluster.create_topic("t", (1, 2, 3), (3, 1))
    cluster.create_topic("u", (2,))
    cluster.create_topic("v", (1, 2))
    cluster.kill(3)
    cluster.start(3)
    cluster.kill(1)
    now(cluster.admin.create("/admin/delete_topics/v"))
    cluster.settle()
    cluster.start(1)
    now(cluster.admin.delete("/controller"))
    cluster.settle()
    assert [] == cluster.failures()
    found = {}
    folders = ["/brokers/topics", "/config/topics", "/admin/delete_topics"]
    while folders:
        path = folders.pop()
        found[path] = now(cluster.admin.get(path))[0]
        folders += [f"{path}/{name}" for name in cluster.children(path)]
    return found


def test_late_answers_lead_to_the_same_end() -> None:
    at_once, later = Cluster(3), Cluster(3, answers_later=True)
    stored = live(at_once)
    assert stored == live(later)
    assert "/brokers/topics/t/partitions/1/state" in stored
    assert "/brokers/topics/v" not in stored
    assert at_once.store.transactions == later.store.transactions


@pytest.mark.parametrize("was_done", [True, False])
def test_an_election_whose_answer_was_lost_is_looked_up(was_done: bool) -> None:
    cluster = Cluster(0, answers_later=True)
    node = cluster.start(1)
    node.later.lost = [was_done]
    now(cluster.admin.delete("/controller"))
    cluster.settle()
    if was_done:
        assert (True, 2) == (node.controller.is_active, node.controller.epoch)
        assert [] == cluster.failures()
        cluster.create_topic("t", (1,))
        assert (1, (1,), 0) == cluster.leader_isr_epoch("t")
    else:
        assert not node.controller.is_active
        assert [ZnodeConnectionLost] == [type(error) for _, error in cluster.failures()]
        node.controller.session_began()
        cluster.settle()
        assert node.controller.is_active


def test_an_election_that_another_won_between_the_reads_is_lost() -> None:
    cluster = Cluster(2, answers_later=True)
    # Both hear of the deletion, both find nobody, one is first.
    now(cluster.admin.delete("/controller"))
    cluster.settle()
    active = [node.controller.is_active for node in cluster.nodes.values()]
    assert [False, True] == sorted(active)
    assert 1 == len({node.controller.controller_id for node in cluster.nodes.values()})
    assert [] == cluster.failures()


def test_a_lost_write_gives_up_one_event_and_not_the_next() -> None:
    cluster = Cluster(1, answers_later=True)
    node = cluster.nodes[1]
    node.later.lost = [False]
    cluster.create_topic("t", (1,))
    assert ["TopicChange"] == [name for name, _ in cluster.failures()]
    cluster.create_topic("u", (1,))
    assert (1, (1,), 0) == cluster.leader_isr_epoch("u")
    # The next failover finds what was left undone.
    now(cluster.admin.delete("/controller"))
    cluster.settle()
    assert (1, (1,), 0) == cluster.leader_isr_epoch("t")


def test_a_stop_waits_for_the_event_that_runs() -> None:
    cluster = Cluster(1, answers_later=True)
    node = cluster.nodes[1]
    cluster.create_topic("t", (1,), settle=False)
    cluster.timers._soon.popleft()()
    assert not node.controller.is_idle
    node.controller.stop()
    assert node.controller.is_active
    cluster.settle()
    assert not node.controller.is_active
    assert (1, (1,), 0) == cluster.leader_isr_epoch("t")
    assert [] == cluster.failures()


def test_two_brokers_never_have_the_same_producer_ids() -> None:
    cluster = Cluster(1, answers_later=True)
    request = message_class("AllocateProducerIdsRequest")(
        broker_id=1, broker_epoch=cluster.controller.context.live_brokers[1].epoch
    )
    replies: list[Any] = []
    cluster.controller.allocate_producer_ids(request).then(replies.append)
    # An old broker writes the node between the read and the write.
    cluster.timers._soon.popleft()()
    cluster.timers._soon.popleft()()
    block = b'{"version":1,"broker":7,"block_start":"0","block_end":"999"}'
    now(cluster.admin.set("/latest_producer_id_block", block))
    cluster.settle()
    assert [1000] == [reply.producer_id_start for reply in replies]
