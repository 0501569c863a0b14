"""Planted faults of the calls between brokers of one process: no network is between them."""

from __future__ import annotations

import pytest

from engine.broker.local_requests import LocalRequests


def stopped_brokers_stay_owed(patch: pytest.MonkeyPatch) -> None:
    """Leave brokers of the same process waiting for what a stopped broker has not answered."""
    patch.setattr(LocalRequests, "end", lambda self: None)
