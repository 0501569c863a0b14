"""A query whose conditions narrow what is read has the rows that reading everything gives.

More of them, by hand, with KCTL_TEST_NARROWED_SEEDS=1000:1100 in the environment.
"""

from __future__ import annotations

import os
import random
from functools import partial
from pathlib import Path

import pytest

from engine.analysis import local_query, record_batches
from engine.analysis.local_query import run_local_query
from engine.analysis.narrowing import Narrowing
from engine.analysis.splits import Selection, Split, plan_splits
from engine.analysis.statements import QueryFailed
from engine.analysis.value_decoding import ValueDecoding
from engine.host.real import RealFiles
from tests.unit.analysis.condition_queries import Queries, decoding, write_logs

_FIRST, _, _END = os.environ.get("KCTL_TEST_NARROWED_SEEDS", "0:2").partition(":")
_QUERIES = 6
Rows = list[str]


def _rows(query: str, splits: list[Split], values: ValueDecoding) -> Rows | None:
    """Return the rows in one order; None for a query that fails, as by a number too large."""
    try:
        result = run_local_query(query, splits, control=False, max_rows=0, decoding=values)
    except QueryFailed:
        return None
    return sorted(map(repr, result.rows))


@pytest.mark.parametrize("seed", range(int(_FIRST), int(_END)))
def test_rows_are_those_of_reading_everything(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrowing = partial(Narrowing, segment_bytes_min=0)
    monkeypatch.setattr(record_batches, "Narrowing", narrowing)
    chance = random.Random(seed)
    write_logs(tmp_path, chance)
    splits = plan_splits(RealFiles(), [str(tmp_path)], Selection())
    queries, values = Queries(chance), decoding()
    for query in [queries.query() for _ in range(_QUERIES)]:
        narrowed = _rows(query, splits, values)
        with monkeypatch.context() as context:
            # No scan is known: every view is read whole.
            context.setattr(local_query, "view_scans", lambda *_: {})
            everything = _rows(query, splits, values)
        # What only everything has may be wrong for a query that narrowed reads none of.
        assert everything is None or narrowed == everything, query
