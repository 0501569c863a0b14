"""A sample of the damage sweep; `make sweep-damage` goes through all of it."""

from __future__ import annotations

import pytest

from engine.native.batch_runs import RunTier
from tests.compiled_walk import compiled_runs_here
from tests.damage_sweep import damages, is_undecidable, run, undamaged

#: Prime to the ten damages of a byte, so that all kinds of them come up.
_STEP = 211


@pytest.mark.parametrize("tier", ["python", "compiled"])
@pytest.mark.parametrize("part", range(4))
def test_no_damage_of_a_small_directory_is_presented_as_good_or_missed(
    part: int, tier: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunTier, "code", compiled_runs_here() if tier == "compiled" else None)
    sample = [d for d in list(damages())[part::_STEP] if not is_undecidable(d)]
    outcomes = [(damage, run(damage)) for damage in sample]
    assert [] == [(damage, o.faults) for damage, o in outcomes if o.faults]
    assert sum(o.is_reported for _, o in outcomes) > len(sample) * 0.9


def test_the_swept_directory_has_every_kind_of_file() -> None:
    names = {path.rpartition("/")[2].rpartition(".")[2] for path in undamaged()}
    assert {"log", "index", "timeindex", "txnindex", "snapshot", "leader-epoch-checkpoint"} < names
