"""Quotas of clients, enforced: a client above its quota gets a throttle time and is muted.

| quota | measured | over it |
|---|---|---|
| producer_byte_rate | bytes of Produce requests | the response has the throttle time |
| consumer_byte_rate | bytes of Fetch responses to consumers | the response is empty, and counts for nothing |
| request_percentage | time that a handler works, in per cent of a second | as above, at most one window; a Fetch is empty |
| controller_mutation_rate | partitions created and deleted, in a bucket of tokens | THROTTLING_QUOTA_EXCEEDED for the topic; older versions are throttled |

Requests of brokers to brokers are free, and so are fetches of followers. A fetch is never larger
than the bytes that all windows but one allow.

Source: ClientQuotaManager, ClientRequestQuotaManager, ControllerMutationQuotaManager, KafkaApis of
3.9.1; KIP-13, KIP-124, KIP-219, KIP-599; REPL-18.
Differs: bytes of a Produce are counted when it comes, in Kafka when it is answered; the time of a
handler counts for the next request of the client. Fetches that wait already when an earlier one of
the same connection exceeds its quota are answered before the time is over; Kafka has not read them.
"""  # noqa: E501 - a table

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

from engine.admin.mutation_quota import UNBOUNDED, MutationQuota
from engine.api.admission import Session
from engine.host.ports import Clock, Timers
from engine.limits import QUOTA_RATE_IDLE_MS
from engine.security.quota_limits import Limit, QuotaKind, QuotaLimits, QuotaOwner
from engine.timing.sampled_rate import SampledRate
from engine.timing.token_bucket import TokenBucket
from engine.wire.headers import api

_PRODUCE: Final = api("Produce").key
#: Per cent of a second for each nanosecond.
_PER_CENT_OF_NS: Final = 100 / 1_000_000_000
_INT_MIN: Final = -(1 << 31)
_INT_MAX: Final = (1 << 31) - 1
_PRINCIPAL_TYPE: Final = "User:"


class QuotaWindows(NamedTuple):
    """Number and length of the windows over which rates are measured."""

    window_count: int
    length_ms: int
    mutation_count: int
    mutation_length_ms: int


class _Key(NamedTuple):
    kind: QuotaKind
    counted: QuotaOwner


class EnforcedQuotas:
    """Measures clients against the limits that are set."""

    def __init__(
        self,
        limits: QuotaLimits,
        windows: QuotaWindows,
        *,
        clock: Clock,
        timers: Timers,
        work_ns: Callable[[], int],
        sanitize: Callable[[str], str],
    ) -> None:
        """Create quotas that have measured no client yet; `windows` are the lengths of the samples.

        `work_ns` is a clock in nanoseconds; `sanitize` converts names to the form that `limits`
        has.
        """
        self.work_ns = work_ns
        self._limits = limits
        self._windows = windows
        self._clock = clock
        self._timers = timers
        self._sanitize = sanitize
        #: Rates of produced and fetched bytes and of request time, by quota and owner.
        self._rates: dict[_Key, SampledRate] = {}
        #: Token buckets for controller mutations, by owner.
        self._buckets: dict[_Key, TokenBucket] = {}
        #: When each rate or bucket was last used (monotonic): unused ones are removed.
        self._used_ms: dict[_Key, int] = {}
        self._purged_ms = clock.monotonic_ms()

    def bounds(self, session: Session) -> bool:
        """True if a quota may ever throttle a client: any quota is set, and it is no own broker."""
        return not (self._limits.is_empty or session.is_own_broker)

    def count_request(self, session: Session, api_key: int, client_id: str | None) -> int:
        """Count a request for its quotas; return the connection's throttle time in ms, 0 for none.

        Bytes are counted only for Produce. The time of earlier requests is compared with the
        request quota.
        """
        if not self.bounds(session):
            return 0
        delay_ms = 0
        if api_key == _PRODUCE:
            counted_ms = self._count(QuotaKind.PRODUCE, session, client_id, session.request_bytes)
            delay_ms = max(0, counted_ms)
        limit = self._limit(QuotaKind.REQUEST, session, client_id)
        if limit is not None:
            key = _Key(QuotaKind.REQUEST, limit.counted)
            over_ms = self._use_rate(key).delay_ms(limit.per_s, self._clock.monotonic_ms())
            delay_ms = max(delay_ms, over_ms)
        return delay_ms

    def count_work(self, session: Session, client_id: str | None, work_ns: int) -> None:
        """Count the nanoseconds that a handler worked for a client, for the request quota."""
        limit = self._limit(QuotaKind.REQUEST, session, client_id)
        if limit is not None:
            rate = self._use_rate(_Key(QuotaKind.REQUEST, limit.counted))
            rate.record(self._clock.monotonic_ms(), work_ns * _PER_CENT_OF_NS)

    def fetch_bytes_max(self, session: Session, client_id: str | None) -> int | None:
        """Return how many bytes the response to one Fetch may have, None without a quota.

        It is the quota for all windows of a sample but one, as in Kafka.
        """
        limit = self._limit(QuotaKind.FETCH, session, client_id)
        if limit is None:
            return None
        windows = self._windows
        bytes_max = limit.per_s * (windows.window_count - 1) * windows.length_ms / 1000
        if math.isnan(bytes_max):
            return 0
        # Java's cast of a double to an int: values beyond the bounds become the bounds.
        return int(max(_INT_MIN, min(_INT_MAX, bytes_max)))

    def count_fetch(self, session: Session, client_id: str | None, size_bytes: int) -> int:
        """Count a fetch's bytes and return 0; above the quota return the throttle time in ms.

        In that case the bytes are not counted: the response has no records.
        """
        delay_ms = self._count(QuotaKind.FETCH, session, client_id, size_bytes)
        if delay_ms > 0:
            self._count(QuotaKind.FETCH, session, client_id, -size_bytes)
        return delay_ms

    def mutation_quota(
        self, session: Session, client_id: str | None, *, is_strict: bool
    ) -> MutationQuota:
        """Return the quota that counts the partitions which one request creates or deletes.

        `is_strict`: partitions are refused above the quota, otherwise the client is only throttled.
        """
        limit = self._limit(QuotaKind.MUTATION, session, client_id)
        if limit is None:
            return UNBOUNDED
        key = _Key(QuotaKind.MUTATION, limit.counted)
        bucket = self._buckets.get(key)
        if bucket is None:
            windows = self._windows
            bucket = TokenBucket(windows.mutation_count, windows.mutation_length_ms)
            self._buckets[key] = bucket
        self._note_use(key)
        return _Mutations(bucket, limit.per_s, self._clock, is_strict=is_strict)

    def call_later(self, delay_ms: int, run: Callable[[], None]) -> None:
        """Call `run` after `delay_ms`, a throttle time."""
        self._timers.call_at(self._clock.monotonic_ms() + delay_ms, run)

    def _limit(self, kind: QuotaKind, session: Session, client_id: str | None) -> Limit | None:
        """Return the quota of a kind that applies to a client's user and client id.

        None if there is none, and for brokers of this process.
        """
        if session.is_own_broker:
            return None
        user = self._sanitize(session.principal.removeprefix(_PRINCIPAL_TYPE))
        return self._limits.limit_of(kind, user, self._sanitize(client_id or ""))

    def _count(self, kind: QuotaKind, session: Session, client_id: str | None, size: int) -> int:
        """Count bytes for the byte rate quota `kind`.

        Returns the throttle time in ms, 0 within the quota.
        """
        limit = self._limit(kind, session, client_id)
        if limit is None:
            return 0
        now_ms = self._clock.monotonic_ms()
        rate = self._use_rate(_Key(kind, limit.counted))
        rate.record(now_ms, size)
        return _java_int(rate.throttle_ms(limit.per_s, now_ms))

    def _use_rate(self, key: _Key) -> SampledRate:
        """Return the measured rate of a quota's owner, created at first use.

        It is marked as used now.
        """
        rate = self._rates.get(key)
        if rate is None:
            rate = self._rates[key] = SampledRate(
                self._windows.window_count, self._windows.length_ms
            )
        self._note_use(key)
        return rate

    def _note_use(self, key: _Key) -> None:
        """Record the time of use of a rate or bucket; drop those unused for QUOTA_RATE_IDLE_MS.

        Clients choose their ids: without expiry the rates would grow without bound.
        """
        now_ms = self._clock.monotonic_ms()
        self._used_ms[key] = now_ms
        if now_ms - self._purged_ms < QUOTA_RATE_IDLE_MS:
            return
        self._purged_ms = now_ms
        for old in [key for key, at in self._used_ms.items() if now_ms - at > QUOTA_RATE_IDLE_MS]:
            del self._used_ms[old]
            self._rates.pop(old, None)
            self._buckets.pop(old, None)


class _Mutations:
    """The bucket of tokens that one request takes from."""

    def __init__(
        self, bucket: TokenBucket, rate_per_s: float, clock: Clock, *, is_strict: bool
    ) -> None:
        """Create the quota of one request for the partitions that it creates or deletes.

        With `is_strict` partitions are refused once the bucket is empty; otherwise the client is
        only throttled.
        """
        self._bucket = bucket
        self._rate_per_s = rate_per_s
        self._clock = clock
        self._is_strict = is_strict
        #: Throttle time at the last record of mutations, and the time of that record (monotonic).
        self._throttle_ms = 0
        self._recorded_ms = 0

    @property
    def is_exceeded(self) -> bool:
        """True if partitions were refused, with THROTTLING_QUOTA_EXCEEDED."""
        return self._is_strict and self._throttle_ms > 0

    def take_tokens(self, partition_count: int) -> bool:
        """Count partitions that are to be created or deleted.

        Returns True if the partitions may be created or deleted now.
        """
        now_ms = self._clock.monotonic_ms()
        if self._is_strict:
            left = self._bucket.refill(self._rate_per_s, now_ms)
            if left >= 0:
                self._bucket.take(partition_count, self._rate_per_s, now_ms)
                return True
        else:
            left = self._bucket.take(partition_count, self._rate_per_s, now_ms)
        if left < 0:
            wait_s = -left / self._rate_per_s if self._rate_per_s else math.inf
            self._throttle_ms = _java_int(_rounded(wait_s * 1000))
            self._recorded_ms = now_ms
        return not self._is_strict

    def throttle_ms(self) -> int:
        """Return the throttle time in ms until the bucket has tokens again."""
        return max(0, self._throttle_ms - (self._clock.monotonic_ms() - self._recorded_ms))


def _rounded(value: float) -> float:
    """Return a number rounded half up, as by Java's Math.round; infinity stays."""
    return math.floor(value + 0.5) if math.isfinite(value) else value


def _java_int(value: float) -> int:
    """Return a number as Java casts a double to a long and that to an int: a large one wraps.

    NaN is 0.
    """
    if math.isnan(value):
        return 0
    longest = (1 << 63) - 1
    whole = int(max(-longest - 1, min(longest, value)))
    return ((whole & 0xFFFF_FFFF) ^ 0x8000_0000) - 0x8000_0000
