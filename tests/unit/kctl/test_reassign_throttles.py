"""Which throttles are taken away."""

from __future__ import annotations

from engine.client.health import Throttle
from kctl.commands.reassign.throttles import NeededThrottle, still_idle

RATE = NeededThrottle(Throttle("broker", "1", "leader.replication.throttled.rate", "5"), 0, None)
LIST = NeededThrottle(
    Throttle("topic", "t", "leader.replication.throttled.replicas", "0:1"), 0, None
)


def test_a_throttle_that_a_move_needs_since_the_question_stays() -> None:
    longer = LIST.throttle._replace(value="0:1,1:2")
    assert [RATE] == still_idle([RATE, LIST], [RATE, NeededThrottle(longer, 1, "1:2")])
    assert [LIST] == still_idle([RATE, LIST], [RATE._replace(move_count=1, needed="5"), LIST])
    assert [] == still_idle([RATE], [])
