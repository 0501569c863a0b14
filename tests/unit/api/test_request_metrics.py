"""What is counted and measured of requests."""

from __future__ import annotations

import pytest

from engine.api.request_metrics import (
    DEPRECATED,
    OF_OTHERS,
    VERSION_BITS,
    OpenRequest,
    RequestMetrics,
    RequestTimes,
)
from engine.timing.histogram import HistogramReading

_FETCH_17 = 1 << VERSION_BITS | 17
_PRODUCE_9 = 9
_METADATA_9 = 3 << VERSION_BITS | 9
_ADD_PARTITIONS_5 = 24 << VERSION_BITS | 5
_MS = 1_000_000


def ended(metrics: RequestMetrics, number: int, count: int = 1, took_ms: int = 0) -> None:
    for _ in range(count):
        metrics.size_recorder(number, "client", "1.0")(100)
        if took_ms:
            metrics.note_time(number, took_ms * _MS)


def figures(metrics: RequestMetrics) -> dict[tuple[str, str], HistogramReading]:
    for _ in metrics.fold(1):
        pass
    return {(figure, request): reading for figure, request, reading in metrics.figures()}


def test_fetches_are_counted_by_who_sent_them() -> None:
    metrics = RequestMetrics()
    metrics.fast[_FETCH_17] = [80, 80]
    ended(metrics, _FETCH_17, 2)
    ended(metrics, _FETCH_17 | OF_OTHERS)
    ended(metrics, _METADATA_9)
    expected = [
        ("Fetch", 17, 5),
        ("FetchConsumer", 17, 2),
        ("Metadata", 9, 1),
        ("FetchFollower", 17, 3),
    ]
    assert sorted(expected) == sorted(metrics.counts())
    found = figures(metrics)
    assert sorted(expected) == sorted(metrics.counts())
    assert [5, 2, 3] == [
        found["TotalTimeMs", name].event_count
        for name in ("Fetch", "FetchConsumer", "FetchFollower")
    ]


def test_verifications_have_a_name_of_their_own() -> None:
    metrics = RequestMetrics()
    ended(metrics, _ADD_PARTITIONS_5)
    ended(metrics, _ADD_PARTITIONS_5 | OF_OTHERS, 2)
    expected = [("AddPartitionsToTxn", 5, 1), ("AddPartitionsToTxnVerification", 5, 2)]
    assert expected == list(metrics.counts())


@pytest.mark.parametrize(("micros", "expected"), [(499, 0), (500, 1), (1_499, 1), (1_500, 2)])
def test_times_are_rounded_to_milliseconds(micros: int, expected: int) -> None:
    metrics = RequestMetrics()
    ended(metrics, _METADATA_9)
    metrics.note_time(_METADATA_9, micros * 1000 + 999)
    assert expected == figures(metrics)["TotalTimeMs", "Metadata"].highest


def test_requests_without_a_time_count_as_none() -> None:
    metrics = RequestMetrics()
    ended(metrics, _METADATA_9, 9)
    ended(metrics, _METADATA_9, 1, took_ms=20)
    found = figures(metrics)
    total, local = found["TotalTimeMs", "Metadata"], found["LocalTimeMs", "Metadata"]
    assert (10, 0, 20, 2.0, 0.0) == (*total[:4], total.median)
    assert total == local
    assert (10, 0, 0) == found["RemoteTimeMs", "Metadata"][:3]
    assert (10, 100, 100, 100.0) == found["RequestBytes", "Metadata"][:4]


@pytest.mark.parametrize(
    ("handled_ms", "filled_ms", "throttle_ms", "expected"),
    [
        # Its handler has made the response.
        (None, None, 0, RequestTimes(10, 10, 0, 0, 0)),
        # It waited for others behind its handler, and its response for none.
        (3, None, 0, RequestTimes(10, 3, 7, 0, 0)),
        # Its response waited for the responses to earlier requests.
        (3, 5, 70, RequestTimes(10, 3, 2, 5, 70)),
        (None, 4, 0, RequestTimes(10, 4, 0, 6, 0)),
    ],
)
def test_the_parts_of_a_time(
    handled_ms: int | None, filled_ms: int | None, throttle_ms: int, expected: RequestTimes
) -> None:
    began_ns = 50 * _MS
    request = OpenRequest(_METADATA_9, 100, began_ns)
    if handled_ms is not None:
        request.handled_ns = began_ns + handled_ms * _MS
    if filled_ms is not None:
        request.filled_ns = began_ns + filled_ms * _MS
    request.throttle_ms = throttle_ms
    assert expected == request.times(began_ns + 10 * _MS)


def test_a_short_request_has_no_times_but_of_a_throttle() -> None:
    request = OpenRequest(_METADATA_9, 100, 0)
    assert request.times(499_999) is None
    request.throttle_ms = 5
    assert RequestTimes(0, 0, 0, 0, 5) == request.times(499_999)


@pytest.mark.parametrize(("quick", "slow"), [(1, 30), (30, 1), (5_000, 15_000)])
def test_times_of_both_paths_are_of_one_sample(quick: int, slow: int) -> None:
    """Produces that wait for followers beside those that a fast path answers at once."""
    metrics = RequestMetrics()
    metrics.fast[_PRODUCE_9] = [80] * quick
    ended(metrics, _PRODUCE_9, slow, took_ms=20)
    reading = figures(metrics)["TotalTimeMs", "Produce"]
    assert (quick + slow, 0, 20) == reading[:3]
    assert 20 * slow == reading.total
    assert (20 if slow > quick else 0) == reading.median


def test_many_requests_are_folded_in_several_steps() -> None:
    metrics = RequestMetrics()
    ended(metrics, _METADATA_9, 9_000, took_ms=1)
    ended(metrics, _METADATA_9, 1_000)
    assert 3 == len(list(metrics.fold(1)))
    assert [] == list(metrics.fold(2))
    assert (10_000, 0, 1, 0.9) == figures(metrics)["TotalTimeMs", "Metadata"][:4]


def test_deprecated_requests_are_counted_by_software_up_to_a_number_of_names() -> None:
    metrics = RequestMetrics()
    number = 1 << VERSION_BITS | 3
    assert {number, 3} & DEPRECATED == {number}
    for index in range(1_000):
        metrics.note_deprecated(number, f"client-{index:04}", "1.0")
    metrics.note_deprecated(number, "client-0000", "1.0")
    metrics.note_deprecated(number | OF_OTHERS, "one-more", "1.0")
    rows = list(metrics.deprecated())
    assert ("Fetch", 3, "client-0000", "1.0", 2) == rows[0]
    assert ("FetchConsumer", 3, "client-0000", "1.0", 2) == rows[1]
    assert ("FetchFollower", 3, "unknown", "unknown", 1) == rows[-1]
    assert 2 * 1_001 == len(rows)


def test_responses_that_are_not_reported_have_no_error() -> None:
    metrics = RequestMetrics()
    ended(metrics, _METADATA_9, 3)
    ended(metrics, _FETCH_17, 2)
    # Of these one each had other codes, or no response at all.
    metrics.report(3, {0: 2, 5: 1})
    metrics.report(1, {})
    assert [
        ("Fetch", "NONE", 2),
        ("Metadata", "NONE", 4),
        ("Metadata", "LEADER_NOT_AVAILABLE", 1),
    ] == list(metrics.errors())
