"""Health of a KRaft quorum: voters that lag, a majority at risk.

| a replica is | when |
|---|---|
| leader | its id is the leader's |
| silent | it never fetched, or not within the bound |
| behind | it fetches, and has not had the whole log within the bound |
| caught up | else |

All times are by the leader's clock; its own last fetch time is its present time. A record is
committed once a majority of voters have it, so that metadata changes as long as a majority is
caught up.

| finding | severity | when |
|---|---|---|
| no-leader | critical | the quorum has no leader |
| no-majority | critical | fewer voters than a majority are caught up |
| majority-at-risk | critical | a voter lags, and the loss of one more ends the majority |
| voter-behind | warning | a voter is silent or behind |
| observer-behind | notice | an observer is silent or behind: a broker with outdated metadata |

Source: KIP-595, KIP-836; LeaderState.describeQuorum, updateCheckQuorum.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from engine.client.findings import CRITICAL, NOTICE, WARNING, HealthFinding
from engine.client.quorum_admin import QuorumReplica, QuorumView

LEADER: Final = "leader"
CAUGHT_UP: Final = "caught up"
BEHIND: Final = "behind"
SILENT: Final = "silent"
#: Lag in time from which a replica is behind. Source: controller.quorum.fetch.timeout.ms (2 s),
#: after which the quorum elects without the replica, with a reserve.
BEHIND_FOR_MS: Final = 5_000


class ReplicaHealth(NamedTuple):
    """A voter or observer with its lag in records and ms; None if it is unknown."""

    replica: QuorumReplica
    is_voter: bool
    state: str
    lag: int | None
    behind_ms: int | None

    @property
    def is_caught_up(self) -> bool:
        """True if the replica leads or is caught up, so that it counts for a majority."""
        return self.state in (LEADER, CAUGHT_UP)


class QuorumHealth(NamedTuple):
    """The replicas, voters first, and how many voters make a majority."""

    replicas: tuple[ReplicaHealth, ...]
    majority: int

    @property
    def voters(self) -> list[ReplicaHealth]:
        """Return the replicas that are voters, without the observers."""
        return [one for one in self.replicas if one.is_voter]

    @property
    def caught_up_count(self) -> int:
        """Return the number of voters that are caught up."""
        return sum(one.is_caught_up for one in self.voters)

    @property
    def losses_left(self) -> int:
        """Return how many caught-up voters may fail before the quorum loses its majority."""
        return max(self.caught_up_count - self.majority, 0)


def quorum_health(quorum: QuorumView, now_ms: int, behind_for_ms: int) -> QuorumHealth:
    """Return the state of each voter and observer, by the leader's clock.

    `now_ms` (wall clock) is used if the leader does not return its time. A replica that lags for
    longer than `behind_for_ms` is behind.
    """
    leader = next((one for one in quorum.voters if one.replica_id == quorum.leader_id), None)
    if leader is not None and leader.last_fetch_ms is not None:
        now_ms = leader.last_fetch_ms
    end = None if leader is None else leader.log_end_offset
    voters = [_replica_health(one, quorum, end, now_ms, behind_for_ms) for one in quorum.voters]
    observers = [
        _replica_health(one, quorum, end, now_ms, behind_for_ms) for one in quorum.observers
    ]
    replicas = (*voters, *(one._replace(is_voter=False) for one in observers))
    return QuorumHealth(replicas, len(quorum.voters) // 2 + 1)


def _replica_health(
    replica: QuorumReplica,
    quorum: QuorumView,
    end_offset: int | None,
    now_ms: int,
    behind_for_ms: int,
) -> ReplicaHealth:
    """Classify one replica of the quorum; times are in ms.

    `end_offset` is the leader's log end offset; the lag is None if this or the replica's is
    unknown.
    """
    if replica.replica_id == quorum.leader_id:
        return ReplicaHealth(replica, True, LEADER, 0, 0)
    lag = None
    # Offset -1: the leader does not know the replica's log end.
    if end_offset is not None and replica.log_end_offset >= 0:
        lag = max(end_offset - replica.log_end_offset, 0)
    behind_ms = _ms_since(replica.last_caught_up_ms, now_ms)
    fetched_ms = _ms_since(replica.last_fetch_ms, now_ms)
    if fetched_ms is None or fetched_ms > behind_for_ms:
        state = SILENT
    elif behind_ms is None or behind_ms > behind_for_ms:
        state = BEHIND
    else:
        state = CAUGHT_UP
    return ReplicaHealth(replica, True, state, lag, behind_ms)


def _ms_since(time_ms: int | None, now_ms: int) -> int | None:
    """Return the ms since a time, None if the time is unknown."""
    return None if time_ms is None else max(now_ms - time_ms, 0)


def quorum_findings(quorum: QuorumView, health: QuorumHealth) -> list[HealthFinding]:
    """Return the problems of a quorum as findings.

    A missing leader or majority comes first, then replicas that are behind.
    """
    voters = health.voters
    count, majority = health.caught_up_count, health.majority
    counts = f"{count} of {len(voters)} voters are caught up, {majority} make a majority"
    found: list[HealthFinding] = []
    if not any(one.state == LEADER for one in voters):
        cause = "no voter leads: no metadata changes"
        found.append(HealthFinding(CRITICAL, "no-leader", "quorum", cause))
    if count < majority:
        cause = f"{counts}: no metadata changes"
        found.append(HealthFinding(CRITICAL, "no-majority", "quorum", cause))
    elif count < len(voters) and count == majority:
        cause = f"{counts}: the loss of one more halts metadata"
        found.append(HealthFinding(CRITICAL, "majority-at-risk", "quorum", cause))
    for one in health.replicas:
        if not one.is_caught_up:
            severity, kind = (WARNING, "voter") if one.is_voter else (NOTICE, "observer")
            subject = f"{kind} {one.replica.replica_id}"
            found.append(HealthFinding(severity, f"{kind}-behind", subject, _lag_text(one)))
    return found


def _lag_text(one: ReplicaHealth) -> str:
    """Return as text why a replica is not caught up: since when, and by how many records."""
    if one.replica.last_fetch_ms is None:
        return "it has fetched nothing since the leader was elected"
    lag = "" if one.lag is None else f", {one.lag} records behind"
    if one.behind_ms is None:
        return f"{one.state}: never caught up since the leader was elected{lag}"
    return f"{one.state}: caught up {one.behind_ms / 1000:.1f} s ago{lag}"
