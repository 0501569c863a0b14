"""A broker whose power was cut is away until its loss is seen, or for so long at most."""

from __future__ import annotations

from engine.sim.delayed_restarts import DelayedRestarts


class Losses:
    """A loss of broker 1 that is seen, or not."""

    is_seen = False

    def is_unseen(self, broker_id: int) -> bool:
        return broker_id == 1 and not self.is_seen


def test_a_broker_is_away_until_its_loss_is_seen() -> None:
    losses = Losses()
    returns = DelayedRestarts(losses)
    returns.record_lost_writes(1, 5_000)
    assert returns.must_wait(1, 6_000)
    losses.is_seen = True
    assert not returns.must_wait(1, 6_000)


def test_a_broker_that_lost_nothing_starts_at_once() -> None:
    assert not DelayedRestarts(Losses()).must_wait(1, 6_000)


def test_a_broker_comes_back_unseen_where_nobody_looks() -> None:
    returns = DelayedRestarts(Losses())
    returns.record_lost_writes(1, 5_000)
    assert [True, False] == [returns.must_wait(1, now_ms) for now_ms in (24_999, 25_000)]
