"""Throttle time and error of a request that creates or deletes partitions, by its quota.

Old versions have no error code for it: their requests are served, and the connection is muted.

Source: RequestHandlerHelper.sendResponseMaybeThrottleWithControllerQuota; KIP-599.
"""

from __future__ import annotations

from typing import TypeVar

from engine.admin.mutation_quota import MutationQuota
from engine.api.exchange import EncodedRows, Exchange
from engine.wire.structs import Message

T = TypeVar("T", bound=Message | EncodedRows)


def quota_of(exchange: Exchange, *, strict_since: int) -> MutationQuota:
    """Return the controller mutation quota of a request's client, which counts its partitions.

    From version `strict_since` on partitions above it are refused; before only throttled.
    """
    session = exchange.session
    is_strict = exchange.api_version >= strict_since
    return session.admission.quotas.mutation_quota(session, exchange.client_id, is_strict=is_strict)


def apply_throttle(response: T, quota: MutationQuota, exchange: Exchange) -> T:
    """Set the throttle time in a response of topic changes, and return the response.

    The connection is muted for that time, unless partitions were refused.
    """
    throttle_ms = quota.throttle_ms()
    if throttle_ms > 0:
        message = response.message if isinstance(response, EncodedRows) else response
        message.throttle_time_ms = throttle_ms
        if not quota.is_exceeded:
            exchange.session.on_throttle(throttle_ms)
    return response
