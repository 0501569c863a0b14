"""Count the error codes in a response, including NONE.

Most responses have a code at the top, one in each row, or both, and each of them counts. The few
exceptions have a function here.

Source: AbstractResponse.errorCounts of all responses of 3.9.1. Differs: OffsetFetch before version
2, which has no code at the top, counts that as NONE.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Final, NamedTuple, TypeAlias

from engine.kafka_errors import NONE
from engine.wire.headers import api
from engine.wire.layout import StructLayout, message_layout
from engine.wire.structs import Message, Struct

#: How often an error code occurs.
ErrorCounts: TypeAlias = Mapping[int, int]

#: Error counts of a response with one code, without error; and of one with two codes.
ONE_SUCCESS: Final[ErrorCounts] = {NONE: 1}

_CODE: Final = "error_code"
_PARTITION_CODE: Final = "partition_error_code"


class _Codes(NamedTuple):
    """The fields with error codes in a struct: its own, and those of the rows of its arrays."""

    own: tuple[str, ...]
    rows: tuple[tuple[str, _Codes], ...]

    def of(self, message: Message) -> Iterator[int]:
        """Yield the error codes in a response.

        The response's own come first, then those of its rows, in nested arrays too.
        """
        for attribute in self.own:
            yield getattr(message, attribute)
        for attribute, codes in self.rows:
            for row in getattr(message, attribute) or ():
                yield from codes.of(row)


def error_counts(name: str, response: Struct) -> ErrorCounts:
    """Return how often each error code occurs in a response of the API `name`, for the metrics."""
    own = _OTHERS.get(name)
    return Counter(_error_fields(name).of(response) if own is None else own(response))


@cache
def _error_fields(name: str) -> _Codes:
    """Return the fields with error codes in an API's response, over all stable versions."""
    versions = api(name).stable
    layouts = (
        message_layout(f"{name}Response", version)
        for version in range(versions.lowest, versions.highest + 1)
    )
    return _merge_fields([_codes_of_layout(layout) for layout in layouts])


def _codes_of_layout(layout: StructLayout) -> _Codes:
    """Return the fields with error codes in one version's layout, in nested arrays too."""
    own = tuple(
        field.attribute
        for field in layout.fields
        if field.attribute in (_CODE, _PARTITION_CODE) and field.place != "absent"
    )
    rows = [
        (field.attribute, _codes_of_layout(field.struct))
        for field in layout.fields
        if field.struct is not None and field.is_array and field.place != "absent"
    ]
    return _Codes(own, tuple((attribute, codes) for attribute, codes in rows if any(codes)))


def _merge_fields(all_codes: list[_Codes]) -> _Codes:
    """Merge the fields with error codes of several versions.

    A field that is absent in a response's version reads as its default.
    """
    own = dict.fromkeys(attribute for codes in all_codes for attribute in codes.own)
    rows: dict[str, list[_Codes]] = {}
    for codes in all_codes:
        for attribute, inner in codes.rows:
            rows.setdefault(attribute, []).append(inner)
    return _Codes(tuple(own), tuple((name, _merge_fields(inner)) for name, inner in rows.items()))


def _make_row_reader(*path: str) -> Callable[[Message], Iterator[int]]:
    """Return a function that yields only the codes of the rows at the end of a path of arrays.

    For APIs whose own code Kafka does not count.
    """

    def codes(message: Message, depth: int = 0) -> Iterator[int]:
        """Yield the codes of the rows at the end of `path`; `depth` is how far it is walked."""
        if depth == len(path):
            yield message.error_code
            return
        for row in getattr(message, path[depth]) or ():
            yield from codes(row, depth + 1)

    return codes


def _codes_of_offset_fetch(response: Message) -> Iterator[int]:
    """Yield the codes of groups and of their partitions.

    Before version 8 the response is the group.
    """
    for group in response.groups or (response,):
        yield group.error_code
        for topic in group.topics:
            for partition in topic.partitions:
                yield partition.error_code


def _codes_of_find_coordinator(response: Message) -> Iterator[int]:
    """Yield the codes of a FindCoordinator response: one per coordinator.

    Before version 4 there is only one.
    """
    for row in response.coordinators or (response,):
        yield row.error_code


def _codes_of_add_partitions(response: Message) -> Iterator[int]:
    """Yield the codes of the partitions, and from version 4 on the code of the response."""
    topics = response.results_by_topic_v3_and_below
    if not topics:
        yield response.error_code
    inner = [topic for each in response.results_by_transaction for topic in each.topic_results]
    for topic in (*topics, *inner):
        for partition in topic.results_by_partition:
            yield partition.partition_error_code


def _codes_of_orders(response: Message) -> Iterator[int]:
    """Yield the codes of a LeaderAndIsr or StopReplica response: its own, then one per partition.

    A code of the whole response also counts for each partition.
    """
    topics = getattr(response, "topics", None) or ()
    of_topics = [row for topic in topics for row in topic.partition_errors]
    rows = [*response.partition_errors, *of_topics]
    yield response.error_code
    for row in rows:
        yield response.error_code or row.error_code


_OTHERS: Final[dict[str, Callable[[Message], Iterator[int]]]] = {
    "OffsetFetch": _codes_of_offset_fetch,
    "FindCoordinator": _codes_of_find_coordinator,
    "AddPartitionsToTxn": _codes_of_add_partitions,
    "LeaderAndIsr": _codes_of_orders,
    "StopReplica": _codes_of_orders,
    "DeleteAcls": _make_row_reader("filter_results"),
    "DescribeUserScramCredentials": _make_row_reader("results"),
}
