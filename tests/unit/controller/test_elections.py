"""The rules of elections, one claim each."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.controller.elections import (
    Candidates,
    Elected,
    ElectionReason,
    elect,
    first_state,
    remove_replica,
)
from engine.controller.states import (
    PARTITION_COMES_FROM,
    REPLICA_COMES_FROM,
    PartitionPhase,
    ReplicaPhase,
)
from engine.znode.values import NO_LEADER, PartitionStateNode

EPOCH = 7


def state(leader: int, *isr: int, recovery: int = 0) -> PartitionStateNode:
    return PartitionStateNode(leader, 4, isr, 3, recovery)


def run(
    reason: ElectionReason, current: PartitionStateNode, candidates: Candidates
) -> Elected | None:
    return elect(reason, current, candidates, EPOCH)


def outcome(elected: Elected | None) -> tuple[int, tuple[int, ...]] | None:
    return None if elected is None else (elected.state.leader, elected.state.isr)


def test_assignment_order_decides_who_leads() -> None:
    candidates = Candidates((0, 1, 2), frozenset((1, 2)))
    elected = run(ElectionReason.OFFLINE, state(0, 0, 2, 1), candidates)
    assert elected is not None
    assert (1, (2, 1)) == outcome(elected)
    assert PartitionStateNode(1, 5, (2, 1), EPOCH) == elected.state
    assert (1, 2) == elected.recipients


def test_nobody_leads_without_a_live_member_of_the_isr() -> None:
    assert None is run(
        ElectionReason.OFFLINE, state(0, 0), Candidates((0, 1, 2), frozenset((1, 2)))
    )


def test_an_unclean_leader_is_alone_in_isr_and_has_to_recover() -> None:
    candidates = Candidates((0, 1, 2), frozenset((1, 2)), is_unclean_allowed=True)
    elected = run(ElectionReason.OFFLINE, state(0, 0), candidates)
    assert elected is not None
    assert (1, (1,)) == outcome(elected)
    assert (1, True) == (elected.state.leader_recovery_state, elected.is_unclean)
    assert None is run(
        ElectionReason.OFFLINE,
        state(0, 0),
        Candidates((0,), frozenset(), is_unclean_allowed=True),
    )


def test_a_clean_election_is_preferred_and_keeps_the_recovery_state() -> None:
    candidates = Candidates((0, 1, 2), frozenset((1, 2)), is_unclean_allowed=True)
    elected = run(ElectionReason.OFFLINE, state(0, 2, recovery=1), candidates)
    assert elected is not None
    assert (2, (2,)) == outcome(elected)
    assert (1, False) == (elected.state.leader_recovery_state, elected.is_unclean)


def test_a_reassigned_leader_comes_from_the_target_and_isr_stays() -> None:
    candidates = Candidates((3, 2), frozenset((3, 2)))
    elected = run(ElectionReason.REASSIGN, state(1, 1, 2, 3), candidates)
    assert (3, (1, 2, 3)) == outcome(elected)
    assert elected is not None
    assert (3, 2) == elected.recipients
    assert None is run(ElectionReason.REASSIGN, state(1, 1), candidates)


def test_the_preferred_leader_is_the_first_assigned_or_none() -> None:
    preferred = ElectionReason.PREFERRED
    alive = Candidates((1, 2), frozenset((1, 2)))
    assert (1, (2, 1)) == outcome(run(preferred, state(2, 2, 1), alive))
    assert None is run(preferred, state(2, 2), alive)
    assert None is run(preferred, state(2, 2, 1), Candidates((1, 2), frozenset((2,))))
    assert None is run(preferred, state(2, 2, 1), Candidates((), frozenset((2,))))


def test_a_broker_that_stops_gives_up_leadership_and_isr_in_one() -> None:
    candidates = Candidates((1, 2, 3), frozenset((1, 2, 3)), frozenset((1,)))
    elected = run(ElectionReason.CONTROLLED_SHUTDOWN, state(1, 1, 3, 2), candidates)
    assert (2, (3, 2)) == outcome(elected)
    assert elected is not None
    assert (1, 2, 3) == elected.recipients
    alone = run(ElectionReason.CONTROLLED_SHUTDOWN, state(1, 1), candidates)
    assert alone is None


def test_the_last_isr_member_stays_when_it_goes_offline() -> None:
    gone = remove_replica(state(1, 1, 2), 1, EPOCH)
    assert (NO_LEADER, (2,), 5) == (gone.leader, gone.isr, gone.leader_epoch)
    gone = remove_replica(state(1, 1, 2), 2, EPOCH)
    assert (1, (1,), 5) == (gone.leader, gone.isr, gone.leader_epoch)
    gone = remove_replica(state(1, 1), 1, EPOCH)
    assert (NO_LEADER, (1,), EPOCH) == (gone.leader, gone.isr, gone.controller_epoch)


def test_a_new_partition_is_led_by_its_first_live_replica() -> None:
    assert PartitionStateNode(3, 0, (3, 2), EPOCH) == first_state([3, 2], EPOCH)


replica_ids = st.integers(0, 5)


@given(
    st.sampled_from(ElectionReason),
    st.lists(replica_ids, min_size=1, unique=True),
    st.data(),
)
def test_who_leads_is_alive_and_in_isr_and_the_epoch_rises(
    reason: ElectionReason, replicas: list[int], data: st.DataObject
) -> None:
    isr = data.draw(st.lists(st.sampled_from(replicas), min_size=1, unique=True))
    live = frozenset(data.draw(st.lists(st.sampled_from(replicas), unique=True)))
    stopping = frozenset(data.draw(st.lists(st.sampled_from(replicas), unique=True)))
    unclean = data.draw(st.booleans())
    before = state(isr[0], *isr)
    elected = run(reason, before, Candidates(replicas, live, stopping, unclean))
    if elected is None:
        return
    after = elected.state
    assert after.leader in live
    assert after.leader in after.isr
    assert after.leader_epoch == before.leader_epoch + 1
    assert elected.is_unclean == (after.leader not in before.isr)
    assert elected.is_unclean or set(after.isr) <= set(before.isr)
    if reason is ElectionReason.CONTROLLED_SHUTDOWN:
        assert not stopping & set(after.isr)


def test_every_phase_says_what_comes_before_it() -> None:
    assert set(PartitionPhase) == set(PARTITION_COMES_FROM)
    assert set(ReplicaPhase) == set(REPLICA_COMES_FROM)
    # Every phase can be reached, and none is a dead end.
    for table in (PARTITION_COMES_FROM, REPLICA_COMES_FROM):
        left = {phase for sources in table.values() for phase in sources}
        assert left == set(table)
        assert all(table.values())
