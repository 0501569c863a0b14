"""How responses to commits of offsets list what was asked for."""

from __future__ import annotations

from engine.api.commit_order import commit_result_rows
from engine.model import TopicPartition
from engine.wire import messages

_Topic = messages.OffsetCommitRequest.OffsetCommitRequestTopic
_Row = messages.OffsetCommitRequest.OffsetCommitRequestPartition


def topic(name: str, *indexes: int) -> messages.OffsetCommitRequest.OffsetCommitRequestTopic:
    """Return a topic of a request."""
    return _Topic(name=name, partitions=[_Row(partition_index=index) for index in indexes])


def test_a_partition_named_twice_is_listed_once_with_its_topic() -> None:
    asked = [topic("q-12-b", 0, 0), topic("q-12-b", 1)]
    written = {TopicPartition("q-12-b", 0): 22, TopicPartition("q-12-b", 1): 22}
    assert [("q-12-b", [(0, 22), (1, 22)])] == commit_result_rows(asked, {}, written)


def test_what_was_refused_comes_first_as_often_as_it_was_named() -> None:
    asked = [topic("a", 0, -1), topic("b", 0), topic("a", -1)]
    refused = {TopicPartition("a", -1): 3}
    written = {TopicPartition("a", 0): 0, TopicPartition("b", 0): 0}
    found = commit_result_rows(asked, refused, written)
    assert [("a", [(-1, 3), (-1, 3), (0, 0)]), ("b", [(0, 0)])] == found


def test_what_the_group_was_asked_about_is_in_the_order_of_hashes() -> None:
    # As a broker of Kafka 3.9.1 answers.
    written = {TopicPartition("q-21-b", index): 0 for index in (2, 0, 1)}
    found = commit_result_rows([topic("q-21-b", 2, 0, 1)], {}, written)
    assert [("q-21-b", [(1, 0), (2, 0), (0, 0)])] == found


def test_two_partitions_are_in_the_order_of_hashes_too() -> None:
    # As a broker of Kafka 3.9.1 answers, in either order of the request.
    for indexes in ((0, 1), (1, 0)):
        written = {TopicPartition("t", index): 0 for index in indexes}
        found = commit_result_rows([topic("t", *indexes)], {}, written)
        assert [("t", [(1, 0), (0, 0)])] == found


def test_a_topic_without_partitions_is_listed_only_where_it_is_refused() -> None:
    asked = [topic("known"), topic("gone")]
    assert [("gone", [])] == commit_result_rows(asked, {}, {}, {"gone"})


def test_few_that_were_deleted_are_in_the_order_of_the_request() -> None:
    written = {TopicPartition("q-21-b", index): 0 for index in (2, 0, 1)}
    found = commit_result_rows([topic("q-21-b", 2, 0, 1)], {}, written, have_topic_ids=False)
    assert [("q-21-b", [(2, 0), (0, 0), (1, 0)])] == found
