"""OffsetCommit past its fast path: versions, times, what is refused and how it is listed."""

from __future__ import annotations

from typing import Any

import pytest

from engine.api.admission import Admission, AllowAll, NoQuotas, Session
from engine.api.exchange import Exchange
from engine.api.offset_commit import OffsetCommit
from engine.groups.group_offsets import CommittedOffset
from engine.host.promise import Promise
from engine.model import TopicPartition
from engine.replication.metadata_cache import MetadataCache, PartitionMetadata
from engine.wire import messages
from engine.wire.headers import api
from tests.unit.groups.stage import Stage

Request = messages.OffsetCommitRequest
T0, U0 = TopicPartition("t", 0), TopicPartition("u", 0)


class Denying(AllowAll):
    """Denies what is named."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def may(
        self, _session: Any, _operation: Any, _kind: Any, name: str, _audit: Any = None
    ) -> bool:
        """Return whether a resource is not named."""
        return name not in self._names

    def may_everything(self, _session: Session) -> bool:
        """Return whether nothing is denied."""
        return not self._names


class Commits:
    """Group g, and topics t and u of one partition."""

    def __init__(self, *denied: str) -> None:
        self.stage = Stage()
        self.stage.clock.advance(9_000)
        metadata = MetadataCache(1, "cluster")
        partition = PartitionMetadata(1, 0, (1,), 0, (1,))
        metadata.update(1, [], dict.fromkeys((T0, U0), partition), {})
        self.api = OffsetCommit(self.stage.coordinator.commits, metadata, self.stage.clock)
        self.session = Session("/1.2.3.4", Admission(Denying(*denied), NoQuotas()))

    def codes(
        self, topics: dict[str, tuple[int, ...]], *, version: int = 9, time_ms: int = -1,
        **fields: Any,
    ) -> list[tuple[str, list[tuple[int, int]]]]:  # fmt: skip
        """Send a commit of offset 7 for each partition; return error codes as they are listed."""
        rows = [
            Request.OffsetCommitRequestTopic(
                name=name,
                partitions=[
                    Request.OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=7,
                        committed_metadata=None,
                        commit_timestamp=time_ms,
                    )
                    for index in indexes
                ],
            )
            for name, indexes in topics.items()
        ]
        exchange = Exchange(self.session, api("OffsetCommit").key, version, 1, "app", 0)
        handled = self.api.handle(Request(group_id="g", topics=rows, **fields), exchange)
        response = handled.result() if isinstance(handled, Promise) else handled
        return [
            (topic.name, [(row.partition_index, row.error_code) for row in topic.partitions])
            for topic in response.topics
        ]

    def committed(self) -> dict[TopicPartition, CommittedOffset]:
        """Return what the group has committed."""
        return self.stage.coordinator.commits.fetch("g", None)[1]


@pytest.mark.parametrize(("version", "code"), [(0, 35), (1, 0), (9, 0)])
def test_all_versions_but_0_are_served(version: int, code: int) -> None:
    commits = Commits()
    assert [("t", [(0, code)])] == commits.codes({"t": (0,)}, version=version)
    assert (code == 0) is bool(commits.committed())


@pytest.mark.parametrize("time_ms", [-1, 5])
def test_a_commit_has_the_time_of_its_client_or_of_the_broker(time_ms: int) -> None:
    commits = Commits()
    commits.codes({"t": (0,)}, version=1, time_ms=time_ms)
    now_ms = commits.stage.clock.wall_ms()
    assert {T0: CommittedOffset(7, -1, "", 5 if time_ms == 5 else now_ms)} == commits.committed()


@pytest.mark.parametrize(("retention_ms", "is_kept"), [(-1, False), (0, True), (4_000, True)])
def test_a_retention_counts_from_now(retention_ms: int, *, is_kept: bool) -> None:
    commits = Commits()
    commits.codes({"t": (0,)}, version=4, retention_time_ms=retention_ms)
    now_ms = commits.stage.clock.wall_ms()
    expire_ms = now_ms + retention_ms if is_kept else None
    assert expire_ms == commits.committed()[T0].expire_ms


def test_what_does_not_exist_is_refused_and_listed_first() -> None:
    commits = Commits()
    asked = {"t": (0, 5), "none": (0,), "u": (0,)}
    listed = [("t", [(5, 3), (0, 0)]), ("none", [(0, 3)]), ("u", [(0, 0)])]
    assert listed == commits.codes(asked)
    assert {T0, U0} == set(commits.committed())


def test_a_topic_without_partitions_is_listed_where_it_is_refused() -> None:
    assert [("none", [])] == Commits().codes({"none": (), "t": ()})
    assert [("t", [])] == Commits("t").codes({"t": (), "u": ()})
    assert [] == Commits().codes({})


def test_a_topic_that_is_denied_is_refused_alone() -> None:
    commits = Commits("t")
    assert [("t", [(0, 29), (5, 29)]), ("u", [(0, 0)])] == commits.codes({"t": (0, 5), "u": (0,)})
    assert {U0} == set(commits.committed())


def test_a_group_that_is_denied_is_refused_for_all() -> None:
    commits = Commits("g")
    assert [("t", [(0, 30)]), ("none", [(0, 30)]), ("u", [])] == commits.codes(
        {"t": (0,), "none": (0,), "u": ()}
    )
    assert {} == commits.committed()
