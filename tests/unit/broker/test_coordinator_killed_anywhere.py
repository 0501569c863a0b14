"""A transaction coordinator that dies at any write: its successor ends the work in the same state.

Each story is told once undisturbed. Then it is told again and again, and the coordinator dies
before each of its writes, as the write has begun, and as it is done. What readers and groups see,
and what is known of the transaction, must be the same.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import pytest

from engine.broker.transaction_topic import TransactionTopic
from engine.kafka_errors import (
    INVALID_PRODUCER_EPOCH,
    INVALID_PRODUCER_ID_MAPPING,
    PRODUCER_FENCED,
)
from engine.model import TopicPartition
from engine.transactions.states import TransactionState
from engine.transactions.transaction import Transaction
from engine.transactions.transaction_ends import TransactionEnds
from tests.unit.broker.mortal_coordinator import (
    ID_EXPIRATION_MS,
    OFFSETS,
    PARTITIONS,
    STATE,
    T0,
    T1,
    T2,
    TRANSACTION_TIMEOUT_MS,
    Client,
    Death,
    Moment,
    MortalCoordinator,
)

#: Requests with markers to the two leaders of `begin`, of which the coordinator is none.
_TWO = "markers markers"


class World:
    """The cluster of a story and its producer."""

    def __init__(self, death: Death | None, *, is_one_process: bool) -> None:
        self.cluster = MortalCoordinator(death, is_one_process=is_one_process)
        self.client = Client(self.cluster)


class Story(NamedTuple):
    """What is there before, and what then happens."""

    name: str
    act: Callable[[World], None]
    prepare: Callable[[World], None] = lambda world: None
    #: What the coordinator writes if it lives: states, and one word for each request with markers.
    writes: str = ""


def init(world: World) -> None:
    assert 0 == world.client.init()


def init_again(world: World) -> None:
    """Begin with another instance, which knows nothing of the first."""
    world.client = Client(world.cluster)
    init(world)


def begun(world: World) -> None:
    init(world)
    begin(world)


def begin(world: World) -> None:
    """Begin a transaction with two partitions of two leaders."""
    assert 0 == world.client.add(T0, T1)
    assert 0 == world.client.send(T0, "a", "b")
    assert 0 == world.client.send(T1, "c")


def begun_with_offsets(world: World) -> None:
    begun(world)
    add_offsets(world)


def add(world: World) -> None:
    assert 0 == world.client.add(T0, T2)
    assert 0 == world.client.send(T2, "d")


def add_offsets(world: World) -> None:
    assert 0 == world.client.add_offsets()
    assert 0 == world.client.commit_offset(5)


def commit(world: World) -> None:
    assert 0 == world.client.end(is_commit=True)


def abort(world: World) -> None:
    assert 0 == world.client.end(is_commit=False)


def committed(world: World) -> None:
    begun(world)
    commit(world)
    world.cluster.pass_time(1_000)


def recover(world: World) -> None:
    """Raise the own epoch, and begin as another instance if that has an end."""
    code = world.client.init()
    assert code in (0, PRODUCER_FENCED, INVALID_PRODUCER_EPOCH)
    if code:
        init(world)


def time_out(world: World) -> None:
    world.cluster.pass_time(TRANSACTION_TIMEOUT_MS + 4_000, step_ms=500)
    assert world.client.end(is_commit=True) in (PRODUCER_FENCED, INVALID_PRODUCER_EPOCH)


def fence(world: World) -> None:
    """Let a newer instance begin: what this one has left open is aborted."""
    assert 0 == Client(world.cluster).init()
    assert world.client.end(is_commit=True) in (PRODUCER_FENCED, INVALID_PRODUCER_EPOCH)
    assert INVALID_PRODUCER_EPOCH == world.client.send(T0, "late")


def commit_to_a_new_leader(world: World) -> None:
    """Commit while a leader that is not the coordinator dies: its marker goes to the next one."""
    cluster = world.cluster
    leaders = {cluster.leader(key) for key in (T0, T1)} - {cluster.transaction_coordinator}
    gone = leaders.pop()
    assert gone is not None
    cluster.before_markers = lambda: cluster.die(gone)
    commit(world)
    cluster.until(lambda: gone in cluster.dead)


def expire(world: World) -> None:
    """Let the id be forgotten."""
    world.cluster.pass_time(ID_EXPIRATION_MS + 5_000, step_ms=500)
    assert INVALID_PRODUCER_ID_MAPPING == world.client.end(is_commit=True)


STORIES = (
    Story("an id begins", init, writes="Empty"),
    Story("an id begins again", init_again, committed, writes="Empty"),
    Story("a producer raises its epoch", recover, committed, writes="Empty"),
    Story("the first partitions", begin, init, writes="Ongoing"),
    Story("more partitions", add, begun, writes="Ongoing"),
    Story("offsets", add_offsets, begun, writes="Ongoing"),
    Story("commit", commit, begun_with_offsets, writes=f"PrepareCommit {_TWO} CompleteCommit"),
    Story("abort", abort, begun_with_offsets, writes=f"PrepareAbort {_TWO} CompleteAbort"),
    Story("time-out", time_out, begun_with_offsets, writes=f"PrepareAbort {_TWO} CompleteAbort"),
    Story(
        "fenced by a newer instance",
        fence,
        begun_with_offsets,
        writes=f"PrepareAbort {_TWO} CompleteAbort Empty",
    ),
    Story(
        "a marker meets a new leader",
        commit_to_a_new_leader,
        begun_with_offsets,
        writes=f"PrepareCommit {_TWO} {_TWO} CompleteCommit",
    ),
    Story("an id expires", expire, committed, writes="Dead"),
)


class End(NamedTuple):
    """What is seen as all is done; producer ids and epochs may differ."""

    state: str
    partitions: frozenset[TopicPartition]
    #: Partitions whose readers of committed records wait for the transaction.
    waiting: frozenset[TopicPartition]
    read: tuple[list[str], ...]
    offset: int | None


def end_of(world: World) -> End:
    cluster = world.cluster
    described = world.client.describe()
    keys = [
        TopicPartition(topic.topic, index)
        for topic in described.topics
        for index in topic.partitions
    ]
    waiting = frozenset(key for key in (*PARTITIONS, OFFSETS) if cluster.is_waiting(key))
    return End(
        described.transaction_state,
        frozenset(keys),
        waiting,
        tuple(cluster.committed(key) for key in PARTITIONS),
        None if OFFSETS in waiting else world.client.committed_offset(),
    )


def tell(story: Story, death: Death | None, *, is_one_process: bool) -> World:
    """Tell a story; the coordinator may die during it."""
    world = World(death, is_one_process=is_one_process)
    story.prepare(world)
    world.cluster.pass_time(1_000)
    world.cluster.count_writes()
    story.act(world)
    world.cluster.settle()
    return world


def assert_sound(world: World, why: str) -> None:
    """Assert that replicas are the same, and that what is known is what is written."""
    cluster = world.cluster
    assert not cluster.fatal, why
    for key in (*PARTITIONS, OFFSETS, STATE):
        assert 1 == len({cluster.content(broker_id, key) for broker_id in (1, 2, 3)}), (why, key)
    assert cluster.known() == cluster.replayed(), why
    # The next instance is served, whatever came before.
    init_again(world)
    begin(world)
    commit(world)
    cluster.pass_time(1_000)
    assert not [key for key in (*PARTITIONS, OFFSETS) if cluster.is_waiting(key)], why
    assert ["a", "b"] == cluster.committed(T0)[-2:], why


@pytest.mark.parametrize(
    ("is_one_process", "moments"),
    [(False, tuple(Moment)), (True, (Moment.BEGUN,))],
    ids=["network", "one process"],
)
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_it_ends_in_the_same_state_wherever_the_coordinator_dies(
    story: Story, is_one_process: bool, moments: tuple[Moment, ...]
) -> None:
    # What a coordinator has begun to write is replicated if it dies behind the network, and lost if
    # all brokers are one process.
    undisturbed = tell(story, None, is_one_process=is_one_process)
    writes = tuple(undisturbed.cluster.writes)
    assert story.writes == " ".join(writes)
    expected = end_of(undisturbed)
    assert_sound(undisturbed, "undisturbed")
    for number, moment in product(range(1, len(writes) + 1), moments):
        death = Death(number, moment)
        world = tell(story, death, is_one_process=is_one_process)
        assert world.cluster.dead, str(death)
        assert expected == end_of(world), str(death)
        assert_sound(world, str(death))


# -- planted faults ----------------------------------------------------------------------------


def decided_ends_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Send no markers of ends that an earlier coordinator has decided."""
    patch.setattr(TransactionEnds, "resume", lambda *_: None)


def decided_ends_become_aborts(patch: pytest.MonkeyPatch) -> None:
    """Abort what an earlier coordinator has decided to commit."""
    resume = TransactionEnds.resume

    def abort_it(self: TransactionEnds, coordinator_epoch: int, transaction: Transaction) -> None:
        transaction.state = TransactionState.PREPARE_ABORT
        resume(self, coordinator_epoch, transaction)

    patch.setattr(TransactionEnds, "resume", abort_it)


def logs_are_not_read(patch: pytest.MonkeyPatch) -> None:
    """Begin as coordinator with nothing."""
    patch.setattr(TransactionTopic, "read", lambda *_: iter(()))


@pytest.mark.parametrize(
    ("fault", "death"),
    [
        (decided_ends_are_forgotten, Death(1, Moment.DONE)),
        (decided_ends_become_aborts, Death(1, Moment.DONE)),
        (logs_are_not_read, Death(1, Moment.BEFORE)),
    ],
    ids=lambda value: value.__name__ if callable(value) else str(value),
)
def test_a_planted_fault_is_found(
    fault: Callable[[pytest.MonkeyPatch], None], death: Death, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = next(story for story in STORIES if story.name == "commit")

    def end_after(death: Death | None) -> End | str:
        try:
            return end_of(tell(story, death, is_one_process=False))
        except AssertionError as error:
            return str(error)

    expected = end_after(death)
    assert isinstance(expected, End)
    fault(monkeypatch)
    # Nobody notices unless the coordinator dies.
    assert expected == end_after(None)
    assert expected != end_after(death)
