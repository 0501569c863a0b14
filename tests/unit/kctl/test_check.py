"""The rows that `kctl check` prints."""

from __future__ import annotations

from engine.client.findings import CRITICAL, WARNING, HealthFinding
from engine.model import TopicPartition
from kctl.commands.check.folding import FindingRow, fold_rows
from kctl.commands.check.verdict import CheckResult, finding_row

T0 = TopicPartition("t", 0)
SINCE = "2026-11-27T18:27:59.343Z"


def test_the_time_of_an_in_sync_set_is_not_that_of_a_transaction_in_the_same_partition() -> None:
    found = [
        HealthFinding(CRITICAL, "hanging-transaction", "t-0", "it hangs"),
        HealthFinding(WARNING, "under-replicated", "t-0", "broker 2 is gone", T0),
    ]
    result = CheckResult(found, {"t-0": SINCE}, {})
    assert [None, SINCE] == [finding_row(one, result)["since"] for one in found]


def rows_of(found: list[HealthFinding], since: dict[str, str]) -> list[FindingRow]:
    result = CheckResult(found, since, {})
    return [FindingRow(one, finding_row(one, result)) for one in found]


def out_of_sync(number: int, severity: str = WARNING, broker: int = 3) -> HealthFinding:
    key = TopicPartition("t", number)
    shared = f"broker {broker} is gone"
    cause = f"in sync: {number}; {shared}"
    return HealthFinding(severity, "under-replicated", str(key), cause, key, shared_cause=shared)


def test_many_findings_of_one_cause_are_one_row_with_the_first_names() -> None:
    silent = HealthFinding(CRITICAL, "unreachable", "broker 3", "it does not answer")
    found = [silent, *(out_of_sync(number) for number in range(7)), out_of_sync(9, broker=2)]
    since = {"t-2": "2026-11-27T18:27:59.343Z", "t-1": "2026-11-27T18:27:59.344Z"}
    first, many, other = fold_rows(rows_of(found, since))
    assert ["broker 3", "t-9"] == [first["subject"], other["subject"]]
    assert "t-0, t-1, t-2 and 4 more" == many["subject"]
    assert "7 partitions: broker 3 is gone" == many["cause"]
    assert "2026-11-27T18:27:59.343Z" == many["since"]


def test_a_few_findings_are_shown_each() -> None:
    rows = rows_of([out_of_sync(number) for number in range(5)], {})
    assert [one.row for one in rows] == fold_rows(rows)
    apart = [HealthFinding(WARNING, "idle-group", "g", "it lags") for _ in range(9)]
    assert 9 == len(fold_rows(rows_of(apart, {})))
