"""A broker killed while clients write loses nothing; `make soak-kill` does it for longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.kill_broker import Pace, run

_QUICK = Pace(write_s=(0.1, 0.4), stopping_s=(0.0, 0.1), recovering_s=(0.15, 0.4))


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_when_the_broker_is_killed(tmp_path: Path) -> None:
    figures = run(tmp_path, rounds=3, seed=3, pace=_QUICK)
    assert figures.kills >= 3
    assert figures.acknowledged > 100
