"""Followers of one process, with sessions that are told what has changed and without any.

Source: REPL-5; D27.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given

from engine.api.local_fetch import AnswerLocalFetch
from engine.replication.following.fetch_session_handler import FetchSessionHandler
from engine.replication.following.local_fetch import LocalFetched
from tests.property.fast_replication import EVENTS, FEW, outcome_of


def told_all(_handler: FetchSessionHandler, fetched: LocalFetched) -> Any:
    """Take answers, and forget the session that they are of."""
    return fetched.answers


@FEW
@example(events=[("produce", 0, 1)] * 3 + [("wait", 0, 0), ("produce", 1, 1), ("crash", 0, 0)])
@example(events=[("produce", 0, 3), ("bounce", 0, 0), ("produce", 1, 2), ("grow", 0, 0)])
@given(EVENTS)
def test_a_broker_that_gets_changes_ends_as_one_that_gets_all(
    events: list[tuple[str, int, int]],
) -> None:
    answered: list[int] = []
    handle = AnswerLocalFetch.handle

    def counting(self: AnswerLocalFetch, *arguments: Any) -> Any:
        response = handle(self, *arguments)
        response.watch(
            lambda: answered.append(0 if response.error else len(response.result().answers))
        )
        return response

    seen, counts = [], []
    for is_told_all in (False, True):
        answered.clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(AnswerLocalFetch, "handle", counting)
            if is_told_all:
                patch.setattr(FetchSessionHandler, "process_local_response", told_all)
            seen.append(outcome_of(events, is_one_process=True))
        counts.append(sum(answered))
    assert seen[0] == seen[1]
    assert counts[0] < counts[1]
