"""A controller that dies at any step: its successor ends the work in the same state.

Each story is told once undisturbed. Then it is told again and again, and the controller dies before
and after each of its writes; what is stored and what the brokers were told must be the same (C7).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import pytest

from engine.controller.controller import Controller
from engine.host.promise import Promise
from engine.kafka_errors import ELECTION_NOT_NEEDED, NO_REASSIGNMENT_IN_PROGRESS, NONE
from engine.model import TopicPartition
from engine.wire.structs import message_class
from engine.znode.paths import ISR_CHANGE_PREFIX, LOG_DIR_EVENT_PREFIX
from engine.znode.values import (
    PartitionAssignment,
    decode_topic,
    encode_log_dir_event,
    encode_partition_state,
    encode_partitions,
    encode_reassignment,
    encode_topic,
)
from tests.unit.controller.cluster import now
from tests.unit.controller.mortal import FIRST, SECOND, Death, MortalCluster

T0, T1, U2 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 2)


class Story(NamedTuple):
    """What is there before, and what then happens."""

    name: str
    act: Callable[[MortalCluster], None]
    prepare: Callable[[MortalCluster], None] = lambda world: None
    absent: tuple[int, ...] = ()
    #: Whether its leaders depend on what the controller lived to see.
    is_leader_open: bool = False


def topics(world: MortalCluster) -> None:
    """Create two topics, each broker leading something and following something."""
    world.create_topic("t", (1, 2), (2, 3))
    world.create_topic("u", (3, 1, 2), (2,), (2, 1))


def moving(world: MortalCluster, *targets: tuple[TopicPartition, tuple[int, ...] | None]) -> None:
    """Ask for new replicas."""
    request_class = message_class("AlterPartitionReassignmentsRequest")
    request = request_class(
        topics=[
            request_class.ReassignableTopic(
                name=partition.topic,
                partitions=[
                    request_class.ReassignablePartition(
                        partition_index=partition.partition,
                        replicas=None if target is None else list(target),
                    )
                ],
            )
            for partition, target in targets
        ]
    )

    def is_done(response: Any) -> bool:
        codes = {row.error_code for topic in response.responses for row in topic.partitions}
        # Cancelled a second time, there is nothing to cancel.
        return response.error_code == NONE and codes <= {NONE, NO_REASSIGNMENT_IN_PROGRESS}

    world.ask(lambda controller: controller.alter_reassignments(request), is_done)


def throttled(world: MortalCluster, *targets: tuple[TopicPartition, tuple[int, ...]]) -> None:
    """Begin moves in which nobody catches up yet."""
    topics(world)
    world.settle()
    world.replicas.catch_up = False
    moving(world, *targets)
    world.settle()


def elect(world: MortalCluster, *partitions: TopicPartition, is_unclean: bool) -> None:
    """Ask for an election."""

    def request(controller: Controller) -> Promise[Any]:
        return controller.elect_leaders(partitions, is_unclean=is_unclean)

    wanted = {NONE, ELECTION_NOT_NEEDED}
    world.ask(request, lambda results: {result.code for result in results.values()} <= wanted)


def shut_down(world: MortalCluster, broker_id: int) -> None:
    """Let a broker ask for its controlled shutdown, and stop when it leads nothing any more."""

    def request(controller: Controller) -> Promise[Any]:
        live = controller.context.live_brokers[broker_id]
        return controller.controlled_shutdown(
            message_class("ControlledShutdownRequest")(broker_id=broker_id, broker_epoch=live.epoch)
        )

    def is_done(response: Any) -> bool:
        return response.error_code == NONE and not response.remaining_partitions

    world.ask(request, is_done)
    world.settle()
    world.kill(broker_id)


def away_and_back(world: MortalCluster) -> None:
    """Let a broker come back, with others leading in its place."""
    topics(world)
    world.settle()
    world.kill(2)
    world.settle()
    world.register(2)


def bounce(world: MortalCluster) -> None:
    world.kill(2)
    world.register(2)


def lose_the_last(world: MortalCluster) -> None:
    """Leave partitions with one in-sync replica that is dead and one that is alive and late."""
    topics(world)
    world.settle()
    world.kill(1)
    world.settle()
    world.kill(2)
    world.settle()
    world.replicas.catch_up = False
    world.register(1)


def grow(world: MortalCluster) -> None:
    data, _ = now(world.cluster.admin.get("/brokers/topics/t"))
    topic = decode_topic(data, "/brokers/topics/t")
    added = {2: PartitionAssignment((3, 1)), 3: PartitionAssignment((1, 2, 3))}
    grown = topic._replace(partitions={**topic.partitions, **added})
    now(world.cluster.admin.set("/brokers/topics/t", encode_topic(grown)))


def delete(world: MortalCluster, topic: str = "t") -> None:
    now(world.cluster.admin.create(f"/admin/delete_topics/{topic}"))


def delete_both(world: MortalCluster) -> None:
    delete(world, "t")
    delete(world, "u")


def write_old_node(world: MortalCluster) -> None:
    targets = {T0: (3, 2), T1: (2, 3, 1), TopicPartition("x", 0): (1,)}
    now(world.cluster.admin.create("/admin/reassign_partitions", encode_reassignment(targets)))


def write_old_election(world: MortalCluster) -> None:
    path = "/admin/preferred_replica_election"
    now(world.cluster.admin.create(path, encode_partitions([T1, TopicPartition("x", 0)])))


def fail_log_dir(world: MortalCluster) -> None:
    for node in world.cluster.nodes.values():
        node.channel.errors[2, T1] = node.channel.errors[2, T0] = 56
    now(world.cluster.admin.create(LOG_DIR_EVENT_PREFIX, encode_log_dir_event(2), sequential=True))


def note_isr(world: MortalCluster) -> None:
    """Let an old leader take its follower out of ISR by itself."""
    world.replicas.catch_up = False
    path = "/brokers/topics/t/partitions/0/state"
    state = world.cluster.state("t")._replace(isr=(1,))
    now(world.cluster.admin.set(path, encode_partition_state(state)))
    now(world.cluster.admin.create(ISR_CHANGE_PREFIX, encode_partitions([T0]), sequential=True))


def let_catch_up(world: MortalCluster) -> None:
    world.replicas.catch_up = True


def wait_for_the_clock(world: MortalCluster) -> None:
    for _ in range(2):
        world.cluster.clock.advance(5_000)
        world.settle()


def depose(world: MortalCluster) -> None:
    """Let the first broker win the next election, too: it hears of it before the other."""
    second = world.cluster.nodes[SECOND].controller
    second.session_expired()
    world.cluster.settle()
    second.session_began()
    world.cluster.settle()
    now(world.cluster.admin.delete("/controller"))
    world.replicas.catch_up = True


def much_is_under_way(world: MortalCluster) -> None:
    throttled(world, (T0, (3, 2)), (T1, (1, 2)))
    for node in world.cluster.nodes.values():
        node.channel.silent.add(3)
    delete(world, "u")
    world.settle()
    for node in world.cluster.nodes.values():
        node.channel.silent.discard(3)


def lose_one(world: MortalCluster) -> None:
    topics(world)
    world.settle()
    world.kill(1)


def two_throttled(world: MortalCluster) -> None:
    throttled(world, (T0, (3, 2)), (T1, (1,)))


def cancel_two(world: MortalCluster) -> None:
    moving(world, (T0, None), (T1, None))


def delete_and_catch_up(world: MortalCluster) -> None:
    delete(world)
    let_catch_up(world)


def half_way(world: MortalCluster) -> None:
    """Begin a move to two replicas of which one is in sync and the other is not."""
    throttled(world, (T0, (3, 4)))
    assert world.replicas.propose(T0, (1, 2, 3)) == NONE


STORIES = (
    Story("a topic is created", topics),
    Story("a topic grows", grow, topics),
    Story("a topic is deleted", delete, topics),
    Story("two topics are deleted", delete_both, topics),
    Story("a broker joins", lambda w: w.register(3), topics, absent=(3,)),
    Story("a broker is lost", lambda w: w.kill(2), topics),
    Story("the last in sync is lost", lambda w: w.kill(2), lose_one),
    # Who takes over sees a broker that is alive, and not that it was away.
    Story("a broker bounces", bounce, topics, is_leader_open=True),
    Story("a broker shuts down", lambda w: shut_down(w, 2), topics),
    Story("an election", lambda w: elect(w, T0, T1, is_unclean=False), away_and_back),
    Story("an unclean election", lambda w: elect(w, U2, is_unclean=True), lose_the_last),
    Story("leaders are balanced by the clock", wait_for_the_clock, away_and_back),
    Story("an old tool elects", write_old_election, away_and_back),
    Story("a move begins", two_throttled),
    Story("a move ends", let_catch_up, two_throttled),
    Story("a whole move", lambda w: moving(w, (T0, (3,)), (T1, (1, 2))), topics),
    Story("a new order", lambda w: moving(w, (T0, (2, 1))), topics),
    Story("a move is cancelled", cancel_two, two_throttled),
    Story("a move half in sync is cancelled", lambda w: moving(w, (T0, None)), half_way),
    Story("a move is replaced", lambda w: moving(w, (T0, (1, 3))), half_way),
    Story("an old tool moves", write_old_node, topics),
    Story("a topic that moves is deleted", delete_and_catch_up, two_throttled),
    Story("a log directory fails", fail_log_dir, topics),
    Story("an old leader changes its in-sync set", note_isr, topics),
    Story("a failover during all of it", depose, much_is_under_way),
)


def tell(story: Story, death: Death | None) -> MortalCluster:
    """Tell a story; the first controller may die during it."""
    world = MortalCluster(death, absent=story.absent)
    story.prepare(world)
    world.settle()
    world.clients[FIRST].is_counting = True
    story.act(world)
    world.settle()
    return world


def deaths(story: Story) -> Iterable[Death]:
    for number in range(1, tell(story, None).clients[FIRST].writes + 1):
        yield Death(number, is_done=False)
        yield Death(number, is_done=True)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_it_ends_in_the_same_state_wherever_the_controller_dies(story: Story) -> None:
    undisturbed = tell(story, None)
    undisturbed.assert_all_know()
    assert FIRST in undisturbed.cluster.nodes
    chosen = list(deaths(story))
    assert chosen
    for death in chosen:
        world = tell(story, death)
        assert FIRST not in world.cluster.nodes, str(death)
        with_leaders = not story.is_leader_open
        assert undisturbed.stored(with_leaders) == world.stored(with_leaders), str(death)
        assert undisturbed.orders(with_leaders) == world.orders(with_leaders), str(death)
        world.assert_all_know()
