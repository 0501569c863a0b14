"""The verdict on a quorum: who is behind, and whether a majority is at risk."""

from __future__ import annotations

import pytest

from engine.client.findings import CRITICAL, NOTICE, WARNING
from engine.client.quorum_admin import QuorumReplica, QuorumView
from engine.client.quorum_health import (
    BEHIND,
    BEHIND_FOR_MS,
    CAUGHT_UP,
    LEADER,
    SILENT,
    quorum_findings,
    quorum_health,
)

NOW_MS = 1_000_000


def replica(
    replica_id: int, end: int = 100, *, fetched: int | None = 0, caught_up: int | None = 0
) -> QuorumReplica:
    """Return a replica that fetched, and was caught up, so many ms ago."""
    return QuorumReplica(
        replica_id,
        bytes(16),
        end,
        None if fetched is None else NOW_MS - fetched,
        None if caught_up is None else NOW_MS - caught_up,
    )


def quorum(*voters: QuorumReplica, observers: tuple[QuorumReplica, ...] = ()) -> QuorumView:
    return QuorumView(1, 5, 100, voters, observers, {})


def states(view: QuorumView) -> list[str]:
    return [one.state for one in quorum_health(view, 0, BEHIND_FOR_MS).replicas]


def kinds(view: QuorumView) -> list[tuple[str, str]]:
    health = quorum_health(view, 0, BEHIND_FOR_MS)
    return [(one.severity, one.kind) for one in quorum_findings(view, health)]


@pytest.mark.parametrize(
    ("follower", "state"),
    [
        (replica(2), CAUGHT_UP),
        (replica(2, 90, caught_up=BEHIND_FOR_MS), CAUGHT_UP),
        (replica(2, 90, caught_up=BEHIND_FOR_MS + 1), BEHIND),
        (replica(2, 90, caught_up=None), BEHIND),
        (replica(2, fetched=BEHIND_FOR_MS + 1), SILENT),
        (replica(2, -1, fetched=None, caught_up=None), SILENT),
    ],
)
def test_a_replica_is_behind_by_its_times_and_not_by_its_records(
    follower: QuorumReplica, state: str
) -> None:
    assert [LEADER, state] == states(quorum(replica(1), follower))


def test_times_are_held_against_the_clock_of_the_leader() -> None:
    view = quorum(replica(1), replica(2, 90, caught_up=30))
    far_ahead = quorum_health(view, NOW_MS + 1_000_000, BEHIND_FOR_MS)
    assert (10, 30) == far_ahead.replicas[1][3:]


def test_nothing_is_wrong_with_voters_that_are_caught_up() -> None:
    view = quorum(replica(1), replica(2), replica(3), observers=(replica(4),))
    assert [] == kinds(view)
    assert 1 == quorum_health(view, 0, BEHIND_FOR_MS).losses_left
    assert [] == kinds(quorum(replica(1)))


DEAD = replica(3, fetched=60_000, caught_up=60_000)


def test_one_of_three_that_is_silent_puts_the_majority_at_risk() -> None:
    view = quorum(replica(1), replica(2), DEAD)
    assert [(CRITICAL, "majority-at-risk"), (WARNING, "voter-behind")] == kinds(view)
    assert 0 == quorum_health(view, 0, BEHIND_FOR_MS).losses_left


def test_one_of_five_that_is_silent_leaves_one_to_lose() -> None:
    view = quorum(replica(1), replica(2), DEAD, replica(4), replica(5))
    assert [(WARNING, "voter-behind")] == kinds(view)
    assert 1 == quorum_health(view, 0, BEHIND_FOR_MS).losses_left


def test_two_of_three_that_are_silent_leave_no_majority() -> None:
    found = kinds(quorum(replica(1), DEAD._replace(replica_id=2), DEAD))
    assert [
        (CRITICAL, "no-majority"),
        (WARNING, "voter-behind"),
        (WARNING, "voter-behind"),
    ] == found


def test_an_observer_that_is_behind_is_a_notice() -> None:
    view = quorum(replica(1), observers=(DEAD._replace(replica_id=9),))
    assert [(NOTICE, "observer-behind")] == kinds(view)


def test_a_leader_that_is_no_voter_leads_nothing() -> None:
    view = quorum(replica(2), replica(3))
    assert [(CRITICAL, "no-leader")] == kinds(view)[:1]
    assert [None, None] == [one.lag for one in quorum_health(view, NOW_MS, 1).replicas]
