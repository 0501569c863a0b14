"""The rows that `kctl check` prints."""

from __future__ import annotations

from engine.client.findings import CRITICAL, WARNING, HealthFinding
from engine.model import TopicPartition
from kctl.commands.check.verdict import Look, finding_row

T0 = TopicPartition("t", 0)
SINCE = "2026-11-27T18:27:59.343Z"


def test_the_time_of_an_in_sync_set_is_not_that_of_a_transaction_in_the_same_partition() -> None:
    found = [
        HealthFinding(CRITICAL, "hanging-transaction", "t-0", "it hangs"),
        HealthFinding(WARNING, "under-replicated", "t-0", "broker 2 is gone", T0),
    ]
    look = Look(found, {"t-0": SINCE}, {})
    assert [None, SINCE] == [finding_row(one, look)["since"] for one in found]
