from __future__ import annotations

import pytest

from engine.client.batch_sender import BatchResult
from engine.client.errors import Unreachable
from engine.client.outgoing_batch import OutgoingBatch
from engine.errors import EngineError, api_error
from engine.kafka_errors import MESSAGE_TOO_LARGE, TOPIC_AUTHORIZATION_FAILED
from engine.model import TopicPartition
from engine.records.builder import BatchSettings
from kctl.commands.produce.report import ProduceReport
from kctl.commands.produce.request import ProduceRequest

TOO_LARGE = api_error(MESSAGE_TOO_LARGE)
REFUSED = api_error(TOPIC_AUTHORIZATION_FAILED)


def result(
    places: range, error: EngineError | None = None, *, partition: int = 0, doubtful: bool = False
) -> BatchResult:
    batch = OutgoingBatch(TopicPartition("t", partition), BatchSettings(), 0, (1,))
    for place in places:
        batch.builder.append(0, None, b"x")
        batch.places.append(place)
    return BatchResult(batch, 0, error, doubtful)


def ending(
    report: ProduceReport, last_line: int, *results: BatchResult, capsys: pytest.CaptureFixture[str]
) -> list[str]:
    """Return what is said at the end of a run, after its errors."""
    report.read_up_to(last_line, 0)
    report.count_results(results)
    capsys.readouterr()
    report.close()
    return capsys.readouterr().err.splitlines()


def test_a_run_without_errors_says_how_many(capsys: pytest.CaptureFixture[str]) -> None:
    report = ProduceReport(ProduceRequest("t"), 30)
    assert ["3 records"] == ending(report, 3, result(range(1, 4)), capsys=capsys)
    assert 0 == report.exit_code


def test_records_that_are_too_large_are_the_only_ones_missing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report = ProduceReport(ProduceRequest("t", from_line=2), 30)
    results = (result(range(2, 5)), result(range(5, 6), TOO_LARGE), result(range(6, 9)))
    assert [
        "stored: every line from 2 to 8 but 5",
        "hint: continue after them with --from-line 9",
        "6 records",
    ] == ending(report, 8, *results, capsys=capsys)


def test_batches_that_failed_say_what_is_stored_behind_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report = ProduceReport(ProduceRequest("t"), 30, skipped=[2])
    results = (
        result(range(3, 5)),
        result(range(1, 2)),
        result(range(5, 7), REFUSED),
        result(range(9, 10), REFUSED),
        result(range(7, 9), partition=1),
    )
    assert [
        "stored: every line from 1 to 4 and 2 records of later lines",
        "hint: go on with --from-line 5, which stores those again",
        "5 records",
    ] == ending(report, 9, *results, capsys=capsys)


def test_what_nobody_knows_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    report = ProduceReport(ProduceRequest("t"), 30)
    lost = Unreachable("h", 1, "gone")
    results = (result(range(1, 3)), result(range(3, 4), lost, doubtful=True))
    told = ending(report, 3, *results, capsys=capsys)
    assert "perhaps stored: what was on its way when the broker went away" in told
    assert 3 == report.exit_code


def test_an_error_of_many_batches_is_reported_once(capsys: pytest.CaptureFixture[str]) -> None:
    report = ProduceReport(ProduceRequest("t"), 30)
    report.count_results([result(range(n, n + 1), REFUSED) for n in range(1, 5)])
    assert 1 == capsys.readouterr().err.count("error: ")


def test_retries_are_logged_once_until_one_works(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report = ProduceReport(ProduceRequest("t"), 30)
    for _ in range(3):
        report.on_retry(Unreachable("h", 1, "gone"))
    report.count_results([result(range(1, 2))])
    report.on_retry(Unreachable("h", 1, "gone"))
    told = capsys.readouterr().err.splitlines()
    assert ["warning: cannot reach h:1: gone; trying again for up to 30 s"] * 2 == told
