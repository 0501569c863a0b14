"""Planted faults of client quotas: bytes that count for nothing, throttles that hold nobody."""

from __future__ import annotations

import pytest

from engine.api.enforced_quotas import EnforcedQuotas
from engine.security.quota_limits import QuotaLimits


def produced_bytes_count_for_nothing(patch: pytest.MonkeyPatch) -> None:
    """Take any number of bytes."""
    patch.setattr(EnforcedQuotas, "count_request", lambda *_: 0)


def throttled_connections_are_served(patch: pytest.MonkeyPatch) -> None:
    """Return a throttle time, and go on with the next request at once."""
    call_later = EnforcedQuotas.call_later
    patch.setattr(EnforcedQuotas, "call_later", lambda self, _ms, run: call_later(self, 0, run))


def removed_quotas_stay(patch: pytest.MonkeyPatch) -> None:
    """Hear of quotas that are set alone."""
    take = QuotaLimits.take
    patch.setattr(
        QuotaLimits,
        "take",
        lambda self, owner, config: take(self, owner, config) if config else None,
    )
