"""Kinds of faults, and of an operator's requests, in a simulated cluster, with their durations.

Some bugs need several kinds within a few seconds of each other. `THEMES` has such combinations; for
other seeds each kind is drawn independently.
"""

from __future__ import annotations

from enum import Enum


class FaultKind(Enum):
    """Kinds of faults and of an operator's requests."""

    KILL = "kill"
    POWER_CUT = "power-cut"
    CUT_AMID = "cut-amid"
    STOP = "stop"
    PAUSE = "pause"
    BOUNCE = "bounce"
    ISOLATE = "isolate"
    CUT = "cut"
    DEAF = "deaf"
    RESET = "reset"
    SLOW = "slow"
    LOOKUP_FAILS = "lookup-fails"
    LOOKUP_SLOW = "lookup-slow"
    CUT_STORE = "cut-store"
    RESET_STORE = "reset-store"
    LOSE_WATCH = "lose-watch"
    EXPIRE = "expire"
    DISK_FULL = "disk-full"
    SYNC_ERROR = "sync-error"
    READ_ERROR = "read-error"
    DIRECTORY_FAILED = "directory-failed"
    BIT_ROT = "bit-rot"
    LATE_WORK = "late-work"
    CLOCK_JUMP = "clock-jump"
    STORE_RESTART = "store-restart"
    STORE_SET_BACK = "store-set-back"
    DEPOSE = "depose"
    # Requests of an operator.
    ELECT_PREFERRED = "elect-preferred"
    ELECT_UNCLEAN = "elect-unclean"
    HAND_OVER = "hand-over"
    MOVE = "move"
    CANCEL_MOVE = "cancel-move"
    CREATE_TOPIC = "create-topic"
    DELETE_TOPIC = "delete-topic"
    GROW_TOPIC = "grow-topic"
    CONFIGURE_TOPIC = "configure-topic"
    DELETE_RECORDS = "delete-records"
    MOVE_DIRECTORY = "move-directory"
    THROTTLE = "throttle"
    LIMIT_CLIENTS = "limit-clients"


class Direction(Enum):
    """The direction of the frames that a fault blocks."""

    BOTH = "both ways"
    IN = "inwards"
    OUT = "outwards"


#: Requests of an operator that the cluster may reject.
WORK = (
    FaultKind.ELECT_PREFERRED,
    FaultKind.ELECT_UNCLEAN,
    FaultKind.HAND_OVER,
    FaultKind.MOVE,
    FaultKind.CANCEL_MOVE,
    FaultKind.CREATE_TOPIC,
    FaultKind.DELETE_TOPIC,
    FaultKind.GROW_TOPIC,
    FaultKind.CONFIGURE_TOPIC,
    FaultKind.DELETE_RECORDS,
)
#: Requests of an operator that are drawn separately from the other kinds of a seed.
SEPARATE_WORK = (FaultKind.MOVE_DIRECTORY, FaultKind.THROTTLE, FaultKind.LIMIT_CLIENTS)
#: Faults that are drawn separately from the other kinds of a seed.
SEPARATE_HARM = (FaultKind.BIT_ROT, FaultKind.STORE_SET_BACK)
#: Faults that are drawn for a seed.
HARM = tuple(kind for kind in FaultKind if kind not in WORK + SEPARATE_WORK + SEPARATE_HARM)

#: Kinds that are drawn only with another kind: otherwise there would be nothing to cancel or
#: delete.
COMPANIONS = {
    FaultKind.CANCEL_MOVE: FaultKind.MOVE,
    FaultKind.DELETE_TOPIC: FaultKind.CREATE_TOPIC,
}

#: Shortest and longest duration of each kind in ms; 0 for a momentary event.
DURATIONS = {
    FaultKind.KILL: (0, 15_000),
    FaultKind.POWER_CUT: (0, 15_000),
    FaultKind.CUT_AMID: (1_000, 10_000),
    FaultKind.STOP: (0, 10_000),
    FaultKind.PAUSE: (100, 14_000),
    FaultKind.BOUNCE: (0, 1),
    FaultKind.ISOLATE: (500, 15_000),
    FaultKind.CUT: (500, 15_000),
    FaultKind.DEAF: (500, 12_000),
    FaultKind.RESET: (0, 1),
    FaultKind.SLOW: (1_000, 10_000),
    FaultKind.LOOKUP_FAILS: (500, 12_000),
    FaultKind.LOOKUP_SLOW: (500, 12_000),
    FaultKind.CUT_STORE: (500, 12_000),
    FaultKind.RESET_STORE: (0, 1),
    FaultKind.LOSE_WATCH: (0, 1),
    FaultKind.EXPIRE: (0, 1),
    FaultKind.DISK_FULL: (1_000, 10_000),
    FaultKind.SYNC_ERROR: (0, 1),
    FaultKind.READ_ERROR: (500, 5_000),
    FaultKind.DIRECTORY_FAILED: (500, 8_000),
    FaultKind.BIT_ROT: (2_000, 20_000),
    FaultKind.LATE_WORK: (1_000, 8_000),
    FaultKind.CLOCK_JUMP: (0, 3_600_000),
    FaultKind.STORE_RESTART: (100, 4_000),
    FaultKind.STORE_SET_BACK: (500, 8_000),
    FaultKind.DEPOSE: (0, 1),
    FaultKind.ELECT_PREFERRED: (0, 1),
    FaultKind.ELECT_UNCLEAN: (0, 1),
    FaultKind.HAND_OVER: (0, 1),
    FaultKind.MOVE: (0, 1),
    FaultKind.CANCEL_MOVE: (0, 1),
    FaultKind.CREATE_TOPIC: (0, 1),
    FaultKind.DELETE_TOPIC: (0, 1),
    FaultKind.GROW_TOPIC: (0, 1),
    FaultKind.CONFIGURE_TOPIC: (0, 1),
    FaultKind.DELETE_RECORDS: (0, 1),
    FaultKind.MOVE_DIRECTORY: (0, 1),
    FaultKind.THROTTLE: (1_000, 15_000),
    FaultKind.LIMIT_CLIENTS: (3_000, 15_000),
}

#: Kinds that are drawn together, for scenarios that need all of them.
THEMES = (
    # Two elections that a broker learns of late: unfenced fetch, fast double failover.
    (FaultKind.DEAF, FaultKind.HAND_OVER),
    (FaultKind.DEAF, FaultKind.HAND_OVER, FaultKind.SLOW),
    # A new leader whose watermark lags, a follower that was cut off: early ISR growth.
    (FaultKind.DEAF, FaultKind.HAND_OVER, FaultKind.CUT),
    # Orders of two controllers at once: zombie controller.
    (FaultKind.DEAF, FaultKind.DEPOSE, FaultKind.HAND_OVER),
    (FaultKind.DEAF, FaultKind.EXPIRE, FaultKind.PAUSE, FaultKind.MOVE),
    # A controller that still writes after its successor has begun.
    (FaultKind.DEPOSE, FaultKind.PAUSE, FaultKind.HAND_OVER),
    # Repeated orders and late responses during elections and ISR shrinks.
    (FaultKind.SLOW, FaultKind.DEPOSE, FaultKind.CUT),
    (FaultKind.SLOW, FaultKind.HAND_OVER, FaultKind.MOVE),
    # Connections that cannot be reopened when needed: orders, ISR proposals, fetches.
    (FaultKind.LOOKUP_FAILS, FaultKind.LOOKUP_SLOW, FaultKind.HAND_OVER, FaultKind.RESET),
    # Logs that are created and deleted while disks fail.
    (FaultKind.DISK_FULL, FaultKind.SYNC_ERROR, FaultKind.GROW_TOPIC, FaultKind.MOVE),
    (FaultKind.CREATE_TOPIC, FaultKind.DELETE_TOPIC, FaultKind.KILL, FaultKind.POWER_CUT),
    # Files whose order of writes, syncs and renames matters.
    (FaultKind.CUT_AMID, FaultKind.HAND_OVER, FaultKind.CREATE_TOPIC, FaultKind.DELETE_TOPIC),
    # Syncs that fail at a power cut, disks that write in any order.
    (FaultKind.SYNC_ERROR, FaultKind.POWER_CUT, FaultKind.READ_ERROR),
    # A failed log directory beside one that works.
    (FaultKind.DIRECTORY_FAILED, FaultKind.HAND_OVER, FaultKind.MOVE),
    (
        FaultKind.DIRECTORY_FAILED,
        FaultKind.DELETE_TOPIC,
        FaultKind.CREATE_TOPIC,
        FaultKind.LATE_WORK,
    ),
    # Flushes that complete late: truncations, rolls, deletions, power cuts meanwhile.
    (FaultKind.LATE_WORK, FaultKind.POWER_CUT, FaultKind.CUT, FaultKind.HAND_OVER),
    (FaultKind.LATE_WORK, FaultKind.DEAF, FaultKind.HAND_OVER, FaultKind.POWER_CUT),
    # Reassignments that outlast their controller.
    (FaultKind.MOVE, FaultKind.CANCEL_MOVE, FaultKind.DEPOSE, FaultKind.KILL),
    (FaultKind.MOVE, FaultKind.CANCEL_MOVE, FaultKind.BOUNCE, FaultKind.RESET),
)
