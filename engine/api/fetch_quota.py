"""The effect of quotas on a consumer's fetch: a byte limit, and an empty response over the quota.

Source: KafkaApis.handleFetchRequest; KIP-13, KIP-219.
Differs: of a session the size is that of partitions with records or errors, in Kafka of all that
has news.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from engine.api.exchange import EncodedResponse, Exchange
from engine.api.fetch_session import FetchContext, FetchedPartitions, SessionPartition
from engine.api.response_errors import ErrorCounts
from engine.host.ports import FileRegion
from engine.wire.fetch_bytes import (
    FetchedPartition,
    FetchedTopic,
    FetchResponse,
    encode_fetch_response,
)

_UNBOUNDED: Final = (1 << 31) - 1
#: The codes of a response with one partition, and no error.
_ONE_ROW: Final = [0, 0]


def quota_bytes_max(exchange: Exchange) -> int:
    """Return how many bytes a consumer's fetch may return under its quota; huge without a quota."""
    quotas = exchange.session.admission.quotas
    bound = quotas.fetch_bytes_max(exchange.session, exchange.client_id)
    return _UNBOUNDED if bound is None else bound


def throttle_fetch(fetched: FetchedPartitions, exchange: Exchange) -> int:
    """Count a fetch's bytes for the quota; return the throttle time in ms, 0 for none.

    Above 0 the response has no records. The connection is muted here for the bytes; for request
    time it was muted before.
    """
    session = exchange.session
    if session.may_take_fast_path:
        return 0
    quotas = session.admission.quotas
    size_bytes = _size_of(fetched, exchange.api_version) if quotas.bounds(session) else 0
    delay_ms = 0
    if not exchange.throttle_ms:
        delay_ms = quotas.count_fetch(session, exchange.client_id, size_bytes)
        if delay_ms > 0:
            session.on_throttle(delay_ms)
    return max(exchange.throttle_ms, delay_ms)


def throttled_response(
    context: FetchContext, exchange: Exchange, throttle_ms: int
) -> EncodedResponse:
    """Return the response to a fetch above its quota: the session's id and no partitions."""
    response = context.throttled()
    whole = FetchResponse([], response.error_code, response.session_id, throttle_ms=throttle_ms)
    parts = encode_fetch_response(exchange.api_version, whole)
    return EncodedResponse(parts, None, fetch_errors(whole))


def fetch_errors(whole: FetchResponse) -> ErrorCounts | None:
    """Return how often each error code occurs in a response, for the error metrics.

    None if there is one row and no error.
    """
    codes = [whole.error_code]
    for _, rows in whole.topics:
        codes += [row.error_code for row in rows]
    return None if codes == _ONE_ROW else Counter(codes)


def _size_of(fetched: FetchedPartitions, version: int) -> int:
    """Return the bytes of a response with only the rows that have records or errors."""
    with_news = [(each, row) for each, row in fetched if row.records or row.error_code]
    parts = encode_fetch_response(version, FetchResponse(_group_by_topic(with_news)))
    return sum(part.length if isinstance(part, FileRegion) else len(part) for part in parts)


def _group_by_topic(
    fetched: Iterable[tuple[SessionPartition, FetchedPartition]],
) -> list[FetchedTopic]:
    """Group partitions of one topic that follow each other, as a response has them."""
    topics: list[FetchedTopic] = []
    rows: list[FetchedPartition] = []
    last: str | bytes | None = None
    for partition, row in fetched:
        topic, _ = partition.key
        if topic != last:
            last, rows = topic, []
            topics.append((topic, rows))
        rows.append(row)
    return topics
