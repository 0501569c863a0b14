"""Checks of a client before a request is sent, and the list of APIs that only read.

A client gets its checks when it is created; the rules of contexts, and of commands that only
read, are such checks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from engine.client.connection import Call

#: APIs that change nothing in a cluster.
READING_APIS: Final = frozenset(
    (
        "ApiVersions",
        "ConsumerGroupDescribe",
        "DescribeAcls",
        "DescribeClientQuotas",
        "DescribeCluster",
        "DescribeConfigs",
        "DescribeDelegationToken",
        "DescribeGroups",
        "DescribeLogDirs",
        "DescribeProducers",
        "DescribeQuorum",
        "DescribeShareGroupOffsets",
        "DescribeTopicPartitions",
        "DescribeTransactions",
        "DescribeUserScramCredentials",
        "Fetch",
        "FindCoordinator",
        "ListClientMetricsResources",
        "ListConfigResources",
        "ListGroups",
        "ListOffsets",
        "ListPartitionReassignments",
        "ListTransactions",
        "Metadata",
        "OffsetFetch",
        "OffsetForLeaderEpoch",
        "ShareGroupDescribe",
        "StreamsGroupDescribe",
    )
)


class ClientChecks(NamedTuple):
    """Checks of one client; each raises an error to prevent a request.

    `on_cluster` is called with the cluster id of each Metadata response (None without an id), and
    before any other request is sent. `on_call` is called with each request before it is sent.
    """

    on_cluster: Callable[[str | None], None] | None = None
    on_call: Callable[[Call], None] | None = None


def is_reading(call: Call) -> bool:
    """Return True if a request changes nothing: by its API, or because it only validates."""
    if call.api_name in READING_APIS:
        return True
    return not callable(call.message) and bool(getattr(call.message, "validate_only", False))
