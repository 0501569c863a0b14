"""The results of a request's topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from engine.admin.topic_errors import TopicRefused
from engine.admin.topic_rules import already_exists
from engine.config.describe import DescribedConfig
from engine.controller.grouped_writes import GroupResult
from engine.kafka_errors import NONE, REQUEST_TIMED_OUT, UNKNOWN_SERVER_ERROR
from engine.znode.errors import NodeError, NodeExists


class TopicResult(NamedTuple):
    """The result of one topic of a request; `code` 0 is success.

    A topic that was created, or only validated, also has its id, counts and settings.
    """

    code: int = NONE
    message: str | None = None
    topic_id: bytes | None = None
    partition_count: int = -1
    replication_factor: int = -1
    configs: Sequence[DescribedConfig] = ()


#: Results of all topics of a request, in its order.
TopicResults: TypeAlias = dict[str, TopicResult]


def refused(error: TopicRefused) -> TopicResult:
    """Return the result of a topic that was rejected with `error`.

    Clients do not get the message of UNKNOWN_SERVER_ERROR.
    """
    message = None if error.code == UNKNOWN_SERVER_ERROR else error.detail
    return TopicResult(error.code, message)


def write_error(topic: str, group_result: GroupResult) -> TopicResult | None:
    """Return the result of a topic whose write failed, None if it succeeded."""
    if isinstance(group_result, NodeExists):
        return refused(already_exists(topic))
    if isinstance(group_result, NodeError):
        return TopicResult(UNKNOWN_SERVER_ERROR)
    return None


def mark_late_topics(
    results: Mapping[str, TopicResult], late: Iterable[str]
) -> dict[str, TopicResult]:
    """Return the results, with REQUEST_TIMED_OUT for the `late` topics; each keeps its topic id."""
    timed_out = {
        name: TopicResult(REQUEST_TIMED_OUT, topic_id=results[name].topic_id) for name in late
    }
    return {**results, **timed_out}
