"""Counts, sizes and times of the requests of a broker's clients, by API.

```
 a request ends ── its size joins the list of its API and version, and its times if there are any
     every second
 RequestMetrics.fold ── counts, sums and a sample of each API, with 0 ms for all that is not noted
```

| figure | of |
|---|---|
| total time | from the whole frame to the whole response, handed to the connection |
| local time | the handler, without what it waits for |
| remote time | what the request waits for: followers, records, other brokers |
| response queue time | the wait for the responses to earlier requests of the connection |
| throttle time | what the response orders by a quota |
| bytes | the request's body |

Times are whole milliseconds as Kafka rounds them, so that almost all are 0: those cost nothing but
two readings of a clock.

Source: RequestMetrics and RequestChannel.Request.updateRequestMetrics of 3.9.1, which measure a
fetch for the kind of client that sent it, too. Differs: there is no queue of requests, and how long
the system takes to send is not seen, so neither is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, TypeAlias

from engine.api.response_errors import ErrorCounts
from engine.kafka_errors import NONE, kafka_error
from engine.timing.decaying_sample import DecayingSample
from engine.timing.histogram import HistogramReading, Moments
from engine.wire.headers import api

VERSION_BITS: Final = 16
#: Added to the number of API and version for requests that are measured under a second name.
OF_OTHERS: Final = 1 << 32
#: A shorter time counts as 0 ms.
NOTED_NS: Final = 500_000
_NS_PER_US: Final = 1_000
_US_PER_MS: Final = 1_000
_VERSION_MASK: Final = (1 << VERSION_BITS) - 1
_KEY_MASK: Final = (1 << VERSION_BITS) - 1
_FETCH: Final = api("Fetch").key
_ADD_PARTITIONS: Final = api("AddPartitionsToTxn").key
#: The last version of each API that Kafka 4.0 has removed.
_LAST_DEPRECATED: Final = {
    "AlterReplicaLogDirs": 0,
    "CreateAcls": 0,
    "CreateDelegationToken": 0,
    "CreateTopics": 1,
    "DeleteAcls": 0,
    "DeleteTopics": 0,
    "DescribeAcls": 0,
    "DescribeConfigs": 0,
    "DescribeDelegationToken": 0,
    "DescribeLogDirs": 0,
    "ExpireDelegationToken": 0,
    "Fetch": 3,
    "JoinGroup": 1,
    "ListOffsets": 0,
    "OffsetCommit": 1,
    "OffsetFetch": 0,
    "OffsetForLeaderEpoch": 1,
    "Produce": 2,
    "RenewDelegationToken": 0,
}
#: The numbers (API key and version) of requests of those versions.
DEPRECATED: Final = frozenset(
    api(name).key << VERSION_BITS | version
    for name, last in _LAST_DEPRECATED.items()
    for version in range(last + 1)
)
#: The most software names that are counted separately: clients choose them.
_SOFTWARE_MAX: Final = 1_000
_UNKNOWN: Final = "unknown"
#: The values that are summed in one step of a turn.
_PIECE: Final = 4_096

#: The number of frequent values of a sample whose equal values share one object.
_FREQUENT_MAX: Final = 64

#: The object names of the histograms, in the order of a `RequestFigures`.
TIME_NAMES: Final = (
    "TotalTimeMs",
    "LocalTimeMs",
    "RemoteTimeMs",
    "ResponseQueueTimeMs",
    "ThrottleTimeMs",
)
BYTES_NAME: Final = "RequestBytes"


class RequestTimes(NamedTuple):
    """Times of a request in whole milliseconds, in the order of TIME_NAMES."""

    total_ms: int
    local_ms: int
    remote_ms: int
    response_queue_ms: int
    throttle_ms: int


_NO_TIMES: Final = RequestTimes(0, 0, 0, 0, 0)


class RequestCount(NamedTuple):
    """The number of requests by the name in metrics and version."""

    name: str
    version: int
    request_count: int


class DeprecatedCount(NamedTuple):
    """The number of requests of a deprecated version, by their client's software."""

    name: str
    version: int
    software_name: str
    software_version: str
    request_count: int


class ErrorCount(NamedTuple):
    """The number of an error's occurrences in the responses of an API."""

    name: str
    error: str
    error_count: int


class RequestFigure(NamedTuple):
    """One histogram of the requests with one name."""

    figure: str
    request: str
    reading: HistogramReading


class OpenRequest:
    """A request whose response is not ready, or waits for earlier responses."""

    __slots__ = (
        "began_ns",
        "errors",
        "filled_ns",
        "handled_ns",
        "number",
        "size_bytes",
        "throttle_ms",
    )

    def __init__(
        self, number: int, size_bytes: int, began_ns: int, handled_ns: int | None = None
    ) -> None:
        """Create the times of a request that has no response yet.

        `number` combines API key and version. `handled_ns` is when the handler returned, None if it
        returned the response.
        """
        self.number = number
        self.size_bytes = size_bytes
        self.began_ns = began_ns
        self.handled_ns = handled_ns
        #: When the response was ready; None if it is sent as the handler returns.
        self.filled_ns: int | None = None
        self.throttle_ms = 0
        #: Error codes of the response. None: the most frequent code of its API.
        self.errors: ErrorCounts | None = None

    def times(self, now_ns: int) -> RequestTimes | None:
        """Return how long each part of the request took, as it ends now; None if all round to 0 ms.

        The parts are those of Kafka's RequestMetrics.
        """
        if now_ns - self.began_ns < NOTED_NS and not self.throttle_ms:
            return None
        filled_ns = now_ns if self.filled_ns is None else self.filled_ns
        handled_ns = filled_ns if self.handled_ns is None else self.handled_ns
        return RequestTimes(
            _rounded_ms(now_ns - self.began_ns),
            _rounded_ms(handled_ns - self.began_ns),
            _rounded_ms(filled_ns - handled_ns),
            _rounded_ms(now_ns - filled_ns),
            self.throttle_ms,
        )


def _rounded_ms(duration_ns: int) -> int:
    """Return nanoseconds as milliseconds, rounded half up.

    Source: nanosToMs, whose microseconds Math.round rounds up.
    """
    return (duration_ns // _NS_PER_US + _US_PER_MS // 2) // _US_PER_MS


#: A measured request: the bytes of its body, and its times.
_Value: TypeAlias = tuple[int, RequestTimes]


class _Figures:
    """Sizes and times of the requests with one name."""

    __slots__ = ("_frequent", "_sample", "_sizes", "_times")

    def __init__(self, now_s: int) -> None:
        """Create the figures of a request name, without requests; `now_s` are monotonic seconds."""
        #: Sums over all requests; percentiles come from `_sample`, which favours recent requests.
        self._sizes = Moments()
        self._times = tuple(Moments() for _ in TIME_NAMES)
        self._sample: DecayingSample[_Value] = DecayingSample(now_s)
        #: Frequent values of the sample, so that equal ones share one object.
        self._frequent: dict[_Value, _Value] = {}

    def add(self, sizes: list[int], noted: list[RequestTimes], now_s: int) -> None:
        """Add requests to the figures: the sizes of all, and the times of those of 0.5 ms or more.

        `noted` has these times; all other requests count as 0 ms.
        """
        noted_count = len(noted)
        self._sizes.add_all(sizes)
        for index, moments in enumerate(self._times):
            moments.add_all([times[index] for times in noted])
            moments.add_zeros(len(sizes) - noted_count)

        def value_of(index: int) -> _Value:
            """Return the sampled (size, times) of a request, shared if equal to save memory."""
            # Sizes and times need not belong together: each histogram has only one of them.
            value = sizes[index], noted[index] if index < noted_count else _NO_TIMES
            if len(self._frequent) < _FREQUENT_MAX:
                return self._frequent.setdefault(value, value)
            return self._frequent.get(value, value)

        self._sample.offer(len(sizes), value_of, now_s)

    def readings(self) -> Iterator[tuple[str, HistogramReading]]:
        """Yield name and reading of each histogram: the times, then the sizes."""
        values = self._sample.values
        for index, (name, moments) in enumerate(zip(TIME_NAMES, self._times, strict=True)):
            yield name, moments.read_distribution(times[index] for _, times in values)
        yield BYTES_NAME, self._sizes.read_distribution(size for size, _ in values)


class RequestMetrics:
    """The requests that came to one broker over its listeners."""

    def __init__(self) -> None:
        """Create the metrics of a broker that has served no request."""
        #: Sizes of requests since the last fold, by API key and version in one number: those of
        #: fast paths (of Fetch only for followers), and all others.
        self.fast: dict[int, list[int]] = {}
        self.general: dict[int, list[int]] = {}
        #: Times of slow requests since the last fold.
        self.noted: list[tuple[int, RequestTimes]] = []
        #: By number, the `append` of the list in `general`. Deprecated versions are missing, so
        #: that each of their requests is counted by `size_recorder`.
        self.note_size: dict[int, Callable[[int], None]] = {}
        #: Requests up to the last fold, by number.
        self._counts: dict[int, int] = {}
        #: Requests of deprecated versions, by number and the client's software name and version.
        self._deprecated: dict[tuple[int, str, str], int] = {}
        #: How often each error code was reported, by API key and code; and the number of responses
        #: of each API that were reported.
        self._errors: dict[tuple[int, int], int] = {}
        self._reported: dict[int, int] = {}
        #: Sizes and times by the API's name in metrics.
        self._figures: dict[str, _Figures] = {}

    def note_deprecated(self, number: int, software_name: str, software_version: str) -> None:
        """Count a request of a deprecated version, by the client's software name and version.

        Clients choose these names: beyond a limit they are counted as unknown.
        """
        key = number, software_name, software_version
        if key not in self._deprecated and len(self._deprecated) >= _SOFTWARE_MAX:
            key = number, _UNKNOWN, _UNKNOWN
        self._deprecated[key] = self._deprecated.get(key, 0) + 1

    def deprecated(self) -> Iterator[DeprecatedCount]:
        """Yield how many requests of deprecated versions came, by version and client."""
        for (number, software_name, software_version), count in sorted(self._deprecated.items()):
            for name in _names_of(number):
                version = number & _VERSION_MASK
                yield DeprecatedCount(name, version, software_name, software_version, count)

    def report(self, api_key: int, errors: ErrorCounts) -> None:
        """Count the error codes of a response that differs from the API's most frequent one.

        Most responses have no error and are only counted as requests.
        """
        self._reported[api_key] = self._reported.get(api_key, 0) + 1
        for code, count in errors.items():
            self._errors[api_key, code] = self._errors.get((api_key, code), 0) + count

    def end(self, request: OpenRequest, now_ns: int) -> None:
        """Count a request whose response was sent, or that has none (acks=0), with its times."""
        number, times = request.number, request.times(now_ns)
        self.general.setdefault(number, []).append(request.size_bytes)
        if times is not None:
            self.noted.append((number, times))
        if request.errors is not None:
            self.report(number >> VERSION_BITS & _KEY_MASK, request.errors)

    def end_unanswered(self, request: OpenRequest, now_ns: int) -> None:
        """Count a request whose connection was closed before its response was sent."""
        request.errors = {}
        self.end(request, now_ns)

    def size_recorder(
        self, number: int, software_name: str, software_version: str
    ) -> Callable[[int], None]:
        """Return the function that records the size of a request with this number.

        A deprecated version is counted here, because its clients are listed by their software.
        """
        note_size = self.general.setdefault(number, []).append
        if number & ~OF_OTHERS in DEPRECATED:
            self.note_deprecated(number, software_name, software_version)
        else:
            self.note_size[number] = note_size
        return note_size

    def note_frame(self, api_and_version: int, took_ns: int) -> None:
        """Record the time of a request whose frame a fast path has served."""
        self.note_time(number_of_frame(api_and_version), took_ns)

    def note_time(self, number: int, took_ns: int) -> None:
        """Record the time of a request whose response was sent when the handler returned."""
        took_ms = _rounded_ms(took_ns)
        self.noted.append((number, RequestTimes(took_ms, took_ms, 0, 0, 0)))

    def fold(self, now_s: int) -> Iterator[None]:
        """Add the requests since the last call to the figures; each step adds a bounded number.

        The caller may serve requests between two steps. `now_s` are monotonic seconds.
        """
        noted: dict[int, list[RequestTimes]] = {}
        for number, times in self.noted:
            noted.setdefault(number, []).append(times)
        self.noted.clear()
        # Sizes of both paths together, as their times are recorded together.
        found: dict[int, list[int]] = {}
        for number, sizes in self._pending_sizes():
            if sizes:
                found.setdefault(number, []).extend(sizes)
                sizes.clear()
        for number, sizes in found.items():
            self._counts[number] = self._counts.get(number, 0) + len(sizes)
        for number, sizes in found.items():
            times_of = noted.pop(number, [])
            for start in range(0, len(sizes), _PIECE):
                some, times_of = times_of[:_PIECE], times_of[_PIECE:]
                for name in _names_of(number):
                    self._figures_of(name, now_s).add(sizes[start : start + _PIECE], some, now_s)
                yield

    def _figures_of(self, name: str, now_s: int) -> _Figures:
        """Return the figures of a request name, created at its first request."""
        figures = self._figures.get(name)
        if figures is None:
            figures = self._figures[name] = _Figures(now_s)
        return figures

    def counts(self) -> Iterator[RequestCount]:
        """Yield the number of requests by name and version.

        A Fetch also counts for its kind of client.
        """
        rows: dict[tuple[str, int], int] = {}
        for number, count in sorted(self._totals().items()):
            for name in _names_of(number):
                key = name, number & _VERSION_MASK
                rows[key] = rows.get(key, 0) + count
        for (name, version), count in rows.items():
            if count:
                yield RequestCount(name, version, count)

    def errors(self) -> Iterator[ErrorCount]:
        """Yield how often each error code was in the responses of each API.

        Responses that were not reported have only the API's most frequent codes: success.
        """
        found = dict(self._errors)
        for number, count in self._totals().items():
            key = number >> VERSION_BITS & _KEY_MASK
            found[key, NONE] = found.get((key, NONE), 0) + count * _codes_of_success(key)
        for key, count in self._reported.items():
            found[key, NONE] = found.get((key, NONE), 0) - count * _codes_of_success(key)
        for (key, code), count in sorted(found.items()):
            if count:
                yield ErrorCount(api(key).name, kafka_error(code).name, count)

    def _totals(self) -> dict[int, int]:
        """Return the number of requests by combined API key and version."""
        totals = dict(self._counts)
        for number, sizes in self._pending_sizes():
            totals[number] = totals.get(number, 0) + len(sizes)
        return totals

    def _pending_sizes(self) -> Iterator[tuple[int, list[int]]]:
        """Yield the list of sizes since the last fold by request number.

        A number may come twice: once for the fast path, once for the general path.
        """
        for number, sizes in self.fast.items():
            yield number_of_frame(number), sizes
        yield from self.general.items()

    def figures(self) -> Iterator[RequestFigure]:
        """Yield the histograms of the requests up to the last fold."""
        for name, figures in sorted(self._figures.items()):
            for figure, reading in figures.readings():
                yield RequestFigure(figure, name, reading)


def _codes_of_success(api_key: int) -> int:
    """Return the number of error codes in the most frequent response: 2 for a fetch, else 1.

    A fetch response has a code for itself and one for its partition.
    """
    return 2 if api_key == _FETCH else 1


def number_of_frame(api_and_version: int) -> int:
    """Return the metric's number of a fast-path request: of Fetch it is that of followers.

    The fast path of Fetch frames serves only followers.
    """
    is_fetch = api_and_version >> VERSION_BITS == _FETCH
    return api_and_version | OF_OTHERS if is_fetch else api_and_version


def _names_of(number: int) -> tuple[str, ...]:
    """Return the names in metrics for which a request with this number counts.

    Source: RequestMetrics of 3.9.1.
    """
    key = number >> VERSION_BITS & _KEY_MASK
    if key == _FETCH:
        return ("Fetch", "FetchFollower" if number & OF_OTHERS else "FetchConsumer")
    if key == _ADD_PARTITIONS and number & OF_OTHERS:
        return ("AddPartitionsToTxnVerification",)
    return (api(key).name,)
