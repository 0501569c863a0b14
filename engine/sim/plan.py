"""The plan that a seed determines: a cluster, its load, and faults with their times.

Everything is drawn before the run, so that a plan can be printed, replayed and shrunk. Each seed
selects some kinds of faults and their frequency (swarm testing), because one kind of fault may hide
the effects of another.

Source: D28; Groce and others, "Swarm Testing" (2012); facts on faults in
`docs/internals/simulation.md`.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from engine.sim.clients import ACKS_ALL, ProducerKind
from engine.sim.fault_kinds import (
    COMPANIONS,
    DURATIONS,
    HARM,
    THEMES,
    WORK,
    Direction,
    FaultKind,
)

#: Time of the earliest fault: the cluster is ready by then.
_FIRST_MS = 1_000
_SESSION_MS = 6_000
_LAG_MS = 4_000


class Fault(NamedTuple):
    """One fault.

    `whom` is a broker id, `leader`, `follower` or `controller`, resolved at its start.

    `other` is a random number that determines the rest: the peer, the partition, the replicas.
    Times are in ms from the start of the load.
    """

    at_ms: int
    kind: FaultKind
    whom: str
    duration_ms: int
    other: int = 0
    direction: Direction = Direction.BOTH

    def __str__(self) -> str:
        suffix = "" if self.direction is Direction.BOTH else f", {self.direction.value}"
        return f"{self.at_ms} ms: {self.kind.value} {self.whom} for {self.duration_ms} ms{suffix}"


#: Share of seeds with compacted topics; drawn separately, so that other draws stay the same.
_COMPACTED_SHARE = 0.2
#: Share of seeds with producers that compress; drawn separately.
_COMPRESSED_SHARE = 0.2
#: Share of seeds with two log directories per broker; drawn separately.
_TWO_DIRECTORIES_SHARE = 0.3
#: Share of seeds that delete old records by time or size; drawn separately.
_RETENTION_SHARE = 0.25
#: Share of seeds with brokers that share a process; of these, the shares with all brokers in one
#: process, and with encoded messages between them. A third of them each has neither, one, both.
_SHARED_SHARE, _ALL_SHARE, _ENCODED_SHARE = 2 / 3, 0.5, 0.5
#: Share of seeds with two directories that move replicas between them; the shares of those, and of
#: other seeds, that throttle moves and replication. Drawn separately.
_DIRECTORY_MOVES_SHARE, _THROTTLED_MOVES_SHARE, _THROTTLES_SHARE = 0.6, 0.5, 0.15
#: Share of seeds with client quotas; drawn separately.
_CLIENT_QUOTAS_SHARE = 0.15
#: Share of seeds with bit rot, among those without compaction.
_BIT_ROT_SHARE = 0.12
#: Share of seeds with rollbacks of the store, among those without compaction and bit rot, and their
#: largest number; brokers are down for a while each time.
_SET_BACK_SHARE, _SET_BACKS_MAX = 0.06, 3
#: Shares of seeds with brokers that restart before a controller noticed that they lost writes, and
#: of seeds with unclean elections: both lose records, and find few other bugs.
_UNSEEN_LOSSES_SHARE, _UNCLEAN_SHARE = 0.2, 0.05
#: Share of seeds with transactional producers, among those without compaction, bit rot and
#: rollbacks; of these, the share with two instances that do not know of each other.
_TRANSACTIONS_SHARE, _RIVALS_SHARE = 0.25, 0.4
#: Share of seeds with only such producers whose leaders do not verify transactions.
_UNVERIFIED_SHARE = 0.5
_TRANSACTIONAL = {
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}
_DELETING_WORK = frozenset((FaultKind.DELETE_RECORDS, FaultKind.CONFIGURE_TOPIC))
_VERIFICATION = "transaction.partition.verification.enable"
#: Share of the same seeds with a consumer group, and its numbers of members.
_GROUP_SHARE, _MEMBER_COUNTS = 0.25, (1, 2, 3, 4)
_GROUPED = {
    "offsets.topic.num.partitions": "2",
    "offsets.topic.replication.factor": "3",
    "group.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "200",
}
#: Share of the same seeds with copiers, and their numbers.
_COPIERS_SHARE, _COPIER_COUNTS = 0.2, (1, 2, 2, 3)
_RETENTION_MS, _RETENTION_BYTES = "log.retention.ms", "log.retention.bytes"
_DELETING = {
    "log.segment.bytes": "1024",
    "log.retention.check.interval.ms": "1000",
    "log.initial.task.delay.ms": "500",
}
_CLEANING = {
    "log.segment.bytes": "2048",
    "log.cleaner.backoff.ms": "300",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.cleaner.dedupe.buffer.size": "2097152",
}
_TOMBSTONES_MS = "log.cleaner.delete.retention.ms"


class Plan(NamedTuple):
    """A run that was drawn from a seed: cluster, load and faults."""

    seed: int
    broker_count: int
    #: Partition count of each topic; all have three replicas.
    topics: tuple[int, ...]
    min_isr: int
    is_unclean_allowed: bool
    #: Whether every record is synced before it is committed: then no power cut may lose one.
    is_synced: bool
    settings: tuple[tuple[str, str], ...]
    producers: tuple[ProducerKind, ...]
    consumer_count: int
    delay_ms_max: int
    duration_ms: int
    faults: tuple[Fault, ...]
    #: Log directories of each broker.
    log_dir_count: int = 1
    #: Whether producers compress their batches.
    is_compressed: bool = False
    #: The brokers of each process, by id.
    processes: tuple[tuple[int, ...], ...] = ()
    #: Whether requests between brokers of one process are encoded and decoded.
    encodes_local_messages: bool = False
    #: Whether a broker that lost writes may restart before a controller noticed that it was down.
    has_unseen_losses: bool = True
    #: The transactional id of each producer with transactions.
    transactional_ids: tuple[str, ...] = ()
    #: Number of members in the consumer group; 0 for no group.
    member_count: int = 0
    #: Number of clients that consume, transform and produce in transactions.
    copier_count: int = 0
    #: Whether leaders verify transactions with the coordinator before they append a batch that may
    #: be late.
    is_verified: bool = True

    @property
    def is_compacted(self) -> bool:
        """Return True if topics are compacted, and records have keys."""
        return self.tombstones_stay_ms is not None

    @property
    def retention(self) -> tuple[int, int]:
        """Return (`retention.ms`, `retention.bytes`), the defaults of topics; -1 means no limit."""
        settings = dict(self.settings)
        return int(settings.get(_RETENTION_MS, -1)), int(settings.get(_RETENTION_BYTES, -1))

    @property
    def tombstones_stay_ms(self) -> int | None:
        """Return how long tombstones are kept, in ms; None if topics are not compacted."""
        stay_ms = dict(self.settings).get(_TOMBSTONES_MS)
        return None if stay_ms is None else int(stay_ms)


def plan_of(seed: int, *, duration_ms: int = 30_000) -> Plan:
    """Return the plan of a seed; the same arguments give the same plan."""
    draw = Random(f"{seed}/plan")
    is_synced = draw.random() < 0.2
    settings = {
        "zookeeper.session.timeout.ms": str(_SESSION_MS),
        "replica.lag.time.max.ms": str(_LAG_MS),
        "replica.fetch.wait.max.ms": draw.choice(("300", "500", "1000")),
        "replica.fetch.backoff.ms": "300",
        "replica.high.watermark.checkpoint.interval.ms": draw.choice(("500", "5000")),
        "num.replica.fetchers": draw.choice(("1", "1", "2")),
        "log.segment.bytes": draw.choice(("1048576", "2048")),
        "log.retention.hours": "-1",
        "log.retention.check.interval.ms": draw.choice(("2000", "300000")),
        "auto.create.topics.enable": "false",
        "controlled.shutdown.enable": draw.choice(("true", "true", "false")),
    }
    draw_cleaning = Random(f"{seed}/cleaning")
    if draw_cleaning.random() < _COMPACTED_SHARE:
        settings |= _CLEANING
        settings["log.cleanup.policy"] = draw_cleaning.choice(("compact", "compact,delete"))
        settings[_TOMBSTONES_MS] = draw_cleaning.choice(("500", "2000", "8000"))
    draw_retention = Random(f"{seed}/retention")
    if draw_retention.random() < _RETENTION_SHARE:
        settings |= _DELETING
        settings[_RETENTION_MS] = draw_retention.choice(("-1", "3000", "8000"))
        settings[_RETENTION_BYTES] = draw_retention.choice(("-1", "2048", "8192"))
    if is_synced:
        settings["log.flush.interval.messages"] = "1"
    is_unclean_allowed = draw.random() < _UNCLEAN_SHARE
    broker_count = draw.choice((3, 3, 3, 4))
    log_dir_count = 1 + (Random(f"{seed}/directories").random() < _TWO_DIRECTORIES_SHARE)
    transport = Random(f"{seed}/transport")
    is_shared = transport.random() < _SHARED_SHARE
    plan = Plan(
        seed,
        broker_count=broker_count,
        topics=draw.choice(((1,), (1,), (2,), (3,), (2, 1))),
        min_isr=draw.choice((2, 2, 2, 1)),
        is_unclean_allowed=is_unclean_allowed,
        is_synced=is_synced,
        settings=tuple(settings.items()),
        producers=_draw_producers(draw),
        consumer_count=draw.choice((0, 1)),
        delay_ms_max=draw.choice((1, 3, 10, 30)),
        duration_ms=duration_ms,
        faults=_add_separate_kinds(
            seed,
            _draw_faults(
                draw, duration_ms, _draw_kinds(draw, is_unclean_allowed=is_unclean_allowed)
            ),
            duration_ms,
            log_dir_count,
            is_compacted=_TOMBSTONES_MS in settings,
        ),
        is_compressed=Random(f"{seed}/compression").random() < _COMPRESSED_SHARE,
        log_dir_count=log_dir_count,
        processes=_draw_processes(transport, broker_count, is_shared=is_shared),
        encodes_local_messages=is_shared and transport.random() < _ENCODED_SHARE,
        has_unseen_losses=Random(f"{seed}/returns").random() < _UNSEEN_LOSSES_SHARE,
    )
    return _add_coordinators(plan)


def _add_coordinators(plan: Plan) -> Plan:
    """Add transactional producers, a consumer group and copiers, as the plan's seed determines."""
    kinds = {fault.kind for fault in plan.faults}
    if plan.is_compacted or kinds & {FaultKind.BIT_ROT, FaultKind.STORE_SET_BACK}:
        return plan
    settings = dict(plan.settings)
    draw, ids = Random(f"{plan.seed}/transactions"), []
    if draw.random() < _TRANSACTIONS_SHARE:
        settings |= _TRANSACTIONAL
        ids = [f"id{number}" for number in range(draw.choice((1, 2, 3)))]
        ids += ids[:1] * (draw.random() < _RIVALS_SHARE)
    draw, member_count = Random(f"{plan.seed}/group"), 0
    if draw.random() < _GROUP_SHARE:
        settings |= _GROUPED
        member_count = draw.choice(_MEMBER_COUNTS)
    draw, copier_count = Random(f"{plan.seed}/copiers"), 0
    if draw.random() < _COPIERS_SHARE:
        settings |= _TRANSACTIONAL | _GROUPED
        copier_count = draw.choice(_COPIER_COUNTS)
    draw = Random(f"{plan.seed}/verification")
    deletes = plan.retention != (-1, -1) or kinds & _DELETING_WORK
    # Without verification a log fences old epochs by its producer states, which it removes with
    # their last record: skip it only where nothing is deleted.
    may_skip_verification = ids and not copier_count and not deletes
    is_verified = not may_skip_verification or draw.random() >= _UNVERIFIED_SHARE
    if not is_verified:
        settings[_VERIFICATION] = "false"
    return plan._replace(
        settings=tuple(settings.items()),
        transactional_ids=tuple(ids),
        member_count=member_count,
        copier_count=copier_count,
        is_verified=is_verified,
    )


def _add_separate_kinds(
    seed: int,
    faults: tuple[Fault, ...],
    duration_ms: int,
    log_dir_count: int,
    *,
    is_compacted: bool,
) -> tuple[Fault, ...]:
    """Return the faults together with those of kinds that were added in later versions.

    The later kinds use separate random numbers, so that the other faults of a seed stay the same.
    """
    draw = Random(f"{seed}/separate work")
    has_moves = log_dir_count > 1 and draw.random() < _DIRECTORY_MOVES_SHARE
    has_throttles = draw.random() < (_THROTTLED_MOVES_SHARE if has_moves else _THROTTLES_SHARE)
    chosen = [FaultKind.MOVE_DIRECTORY] * has_moves + [FaultKind.THROTTLE] * has_throttles
    more = _draw_faults(draw, duration_ms, chosen) if chosen else ()
    draw = Random(f"{seed}/client quotas")
    if draw.random() < _CLIENT_QUOTAS_SHARE:
        more += _draw_faults(draw, duration_ms, [FaultKind.LIMIT_CLIENTS])
    draw = Random(f"{seed}/bit rot")
    has_rot = not is_compacted and draw.random() < _BIT_ROT_SHARE
    if has_rot:
        more += _draw_faults(draw, duration_ms, [FaultKind.BIT_ROT])
    draw = Random(f"{seed}/set back")
    if not is_compacted and not has_rot and draw.random() < _SET_BACK_SHARE:
        more += _draw_set_backs(draw, duration_ms)
    return tuple(sorted((*faults, *more), key=lambda it: it.at_ms)) if more else faults


def _draw_set_backs(draw: Random, duration_ms: int) -> tuple[Fault, ...]:
    """Draw rollbacks of the store: only a few per run, because all brokers are down meanwhile."""
    low, high = DURATIONS[FaultKind.STORE_SET_BACK]
    return tuple(
        Fault(
            _FIRST_MS + draw.randrange(duration_ms - _FIRST_MS),
            FaultKind.STORE_SET_BACK,
            "controller",
            low + int((high - low) * draw.random() ** 2),
            draw.randrange(1 << 16),
        )
        for _ in range(draw.randint(1, _SET_BACKS_MAX))
    )


def _draw_processes(
    draw: Random, broker_count: int, *, is_shared: bool
) -> tuple[tuple[int, ...], ...]:
    """Return the brokers of each process: all in one, two in one, or each in a separate one."""
    ids = tuple(range(1, broker_count + 1))
    if not is_shared:
        return tuple((broker_id,) for broker_id in ids)
    if draw.random() < _ALL_SHARE:
        return (ids,)
    together = tuple(sorted(draw.sample(ids, 2)))
    return (together, *((broker_id,) for broker_id in ids if broker_id not in together))


def _draw_producers(draw: Random) -> tuple[ProducerKind, ...]:
    """Draw the kinds of producers: idempotent, acks=all, and sometimes acks 0 or 1."""
    period_ms = draw.choice((100, 200, 400, 1_500))
    kinds = [
        ProducerKind(ACKS_ALL, True, draw.choice((1, 3, 5)), period_ms),
        ProducerKind(ACKS_ALL, False, 1, period_ms),
    ]
    if draw.random() < 0.3:
        kinds.append(ProducerKind(draw.choice((0, 1)), False, 1, period_ms))
    return tuple(kinds)


def _draw_kinds(draw: Random, *, is_unclean_allowed: bool) -> list[FaultKind]:
    """Draw the kinds of faults of one seed: a theme, or a number of kinds.

    To a number of kinds, operator requests may be added.
    """
    if draw.random() < 0.3:
        return list(draw.choice(THEMES))
    chosen = draw.sample(HARM, draw.choice((1, 2, 2, 3, 4, 6)))
    if draw.random() < 0.6:
        work = [kind for kind in WORK if is_unclean_allowed or kind is not FaultKind.ELECT_UNCLEAN]
        chosen += draw.sample(work, draw.choice((1, 2, 4)))
    for kind, companion in COMPANIONS.items():
        if kind in chosen and companion not in chosen:
            chosen.append(companion)
    return chosen


def _draw_faults(draw: Random, duration_ms: int, chosen: list[FaultKind]) -> tuple[Fault, ...]:
    """Draw faults of the chosen kinds at exponentially distributed intervals."""
    mean_ms = draw.choice((700, 1_500, 3_000, 5_000, 8_000))
    whoms = draw.choice(
        (
            ("1", "2", "3"),
            ("leader",),
            ("leader", "follower"),
            ("controller",),
            ("leader", "follower", "controller", "1", "2", "3"),
        )
    )
    faults = []
    at_ms = _FIRST_MS
    while at_ms < duration_ms:
        kind = draw.choice(chosen)
        low, high = DURATIONS[kind]
        # Both short and long durations, not mostly medium ones.
        length_ms = low + int((high - low) * draw.random() ** 2)
        faults.append(
            Fault(
                at_ms,
                kind,
                draw.choice(whoms),
                length_ms,
                draw.randrange(1 << 16),
                draw.choice(list(Direction)),
            )
        )
        at_ms += 1 + int(draw.expovariate(1 / mean_ms))
    return tuple(faults)
