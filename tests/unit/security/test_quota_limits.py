"""Which quota counts for a client."""

from __future__ import annotations

import pytest

from engine.security.quota_limits import (
    DEFAULT,
    NONE,
    Limit,
    QuotaKind,
    QuotaLimits,
    QuotaOwner,
)

PRODUCE = QuotaKind.PRODUCE
BOTH, OF_USER, OF_CLIENT = QuotaOwner("u", "c"), QuotaOwner("u", NONE), QuotaOwner(NONE, "c")
#: Owners of quotas from the first that counts to the last, and who is counted for each.
ORDER = (
    (BOTH, BOTH),
    (QuotaOwner("u", DEFAULT), BOTH),
    (OF_USER, OF_USER),
    (QuotaOwner(DEFAULT, "c"), BOTH),
    (QuotaOwner(DEFAULT, DEFAULT), BOTH),
    (QuotaOwner(DEFAULT, NONE), OF_USER),
    (OF_CLIENT, OF_CLIENT),
    (QuotaOwner(NONE, DEFAULT), OF_CLIENT),
)


def test_the_first_that_is_set_counts() -> None:
    limits = QuotaLimits()
    for at, (owner, _) in enumerate(ORDER):
        limits.take(owner, {"producer_byte_rate": str(at)})
    for at, (owner, counted) in enumerate(ORDER):
        assert Limit(counted, at) == limits.limit_of(PRODUCE, "u", "c")
        limits.take(owner, {})
    assert limits.limit_of(PRODUCE, "u", "c") is None
    assert limits.is_empty


def test_a_client_without_an_id_has_the_quotas_of_its_user() -> None:
    limits = QuotaLimits()
    for at, (owner, _) in enumerate(ORDER):
        limits.take(owner, {"producer_byte_rate": str(at)})
    assert Limit(OF_USER, 2) == limits.limit_of(PRODUCE, "u", NONE)
    limits.take(OF_USER, {})
    assert Limit(OF_USER, 5) == limits.limit_of(PRODUCE, "u", NONE)
    limits.take(QuotaOwner(DEFAULT, NONE), {})
    assert limits.limit_of(PRODUCE, "u", NONE) is None


def test_kinds_have_nothing_to_do_with_each_other() -> None:
    limits = QuotaLimits()
    limits.take(OF_USER, {"producer_byte_rate": "1", "request_percentage": "2.5", "other": "x"})
    limits.take(OF_CLIENT, {"consumer_byte_rate": "3"})
    assert [1.0, 3.0, 2.5, None] == [
        limit and limit.per_s for limit in (limits.limit_of(kind, "u", "c") for kind in QuotaKind)
    ]
    assert {OF_USER, OF_CLIENT} == limits.owners()


def test_a_value_that_is_no_number_changes_nothing() -> None:
    limits = QuotaLimits()
    limits.take(OF_USER, {"producer_byte_rate": "1"})
    with pytest.raises(ValueError, match="many"):
        limits.take(OF_USER, {"producer_byte_rate": "2", "consumer_byte_rate": "many"})
    assert Limit(OF_USER, 1) == limits.limit_of(PRODUCE, "u", "c")
