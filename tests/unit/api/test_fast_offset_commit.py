"""The fast path of commits: what it leaves to the table's row, and commits that wait."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from engine.api.admission import Session, allow_all
from engine.api.exchange import EncodedResponse
from engine.api.fast_offset_commit import FastOffsetCommit
from engine.groups.group_offsets import CommittedOffset
from engine.groups.records import build_offset_record
from engine.host.promise import Promise
from engine.model import TopicPartition
from engine.replication.metadata_cache import MetadataCache, PartitionMetadata
from engine.wire import messages
from engine.wire.codec import message_codec
from engine.wire.headers import api, encode_request_header
from tests.unit.groups.stage import SETTINGS, Stage

T0 = TopicPartition("t", 0)


class Fast:
    """Group g, which commits for t-0 on the fast path."""

    def __init__(self) -> None:
        self.stage = Stage(SETTINGS._replace(offset_metadata_max_bytes=9))
        metadata = MetadataCache(1, "cluster")
        metadata.update(1, [], {T0: PartitionMetadata(1, 0, (1,), 0, (1,))}, {})
        commits = self.stage.coordinator.commits
        commits.make_group("g")
        self.metadata = metadata
        self.path = FastOffsetCommit(commits, metadata, self.stage.clock)
        self.session = Session("/1.2.3.4", allow_all())

    def answer(self, **request_of: Any) -> object:
        """Send a commit of offset 7."""
        return self.path.answer(memoryview(self.frame(**request_of)), self.session)

    def frame(
        self, *, version: int = 9, client_id: str | None = "app", partitions: int = 1,
        group_id: str = "g", topic: str = "t", metadata: str | None = "note",
    ) -> bytes:  # fmt: skip
        """Return a request."""
        request = messages.OffsetCommitRequest
        rows = [
            request.OffsetCommitRequestPartition(
                partition_index=index, committed_offset=7, committed_metadata=metadata
            )
            for index in range(partitions)
        ]
        topics = [request.OffsetCommitRequestTopic(name=topic, partitions=rows)]
        body = message_codec("OffsetCommitRequest", version).encode(
            request(group_id=group_id, topics=topics)
        )
        head = encode_request_header(api("OffsetCommit").key, version, 77, client_id)
        return head + body


def code_of(frame: object) -> int:
    """Return the error code of a response to correlation id 77."""
    if isinstance(frame, EncodedResponse):
        (frame,) = frame.parts
    assert isinstance(frame, bytes)
    assert frame[:5] == struct.pack(">ib", 77, 0)
    (topic,) = message_codec("OffsetCommitResponse", 9).decode(frame[5:]).topics
    (row,) = topic.partitions
    assert (topic.name, row.partition_index) == T0
    code: int = row.error_code
    return code


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("metadata", ["note", "", None, "9 letters", "ä" * 9, "😀" * 4])
def test_a_commit_is_written_as_the_general_path_writes_it(
    version: int, metadata: str | None
) -> None:
    fast = Fast()
    assert 0 == code_of(fast.answer(version=version, metadata=metadata))
    committed = CommittedOffset(7, -1, metadata or "", fast.stage.clock.wall_ms())
    (log,) = fast.stage.log.partitions.values()
    assert [build_offset_record("g", T0, committed)] == log
    assert [0] == fast.stage.log.base_sequences
    assert {T0: committed} == fast.stage.group().offsets.all()


@pytest.mark.parametrize(
    "request_of",
    [
        {"version": 7},
        {"client_id": None},
        {"client_id": "c" * 256},
        {"partitions": 2},
        {"partitions": 0},
        {"group_id": "another"},
        {"group_id": "g" * 127},
        {"topic": "unknown"},
        {"metadata": "10 letters"},
        {"metadata": "😀" * 5},
        {"metadata": "x" * 127},
    ],
)
def test_any_other_commit_is_left_with_nothing_done(request_of: dict[str, object]) -> None:
    fast = Fast()
    assert fast.answer(**request_of) is None
    assert not fast.stage.log.partitions
    assert fast.stage.group().offsets.is_empty


def test_a_commit_is_answered_once_the_in_sync_replicas_have_it() -> None:
    fast = Fast()
    fast.stage.log.is_held = True
    promise = fast.answer()
    assert isinstance(promise, Promise)
    assert not promise.is_kept
    assert fast.stage.group().offsets.is_unstable(T0)
    fast.stage.log.release()
    assert 0 == code_of(promise.result())
    assert not fast.stage.group().offsets.is_unstable(T0)


@pytest.mark.parametrize("is_held", [True, False])
def test_a_commit_that_cannot_be_written_is_forgotten(is_held: bool) -> None:
    fast = Fast()
    fast.stage.log.is_held = is_held
    fast.stage.log.error_code = 0 if is_held else 7
    answer = fast.answer()
    if isinstance(answer, Promise):
        fast.stage.log.release(7)
        answer = answer.result()
    assert 7 == code_of(answer)
    assert fast.stage.group().offsets.is_empty


def test_a_known_head_of_a_deleted_partition_is_left() -> None:
    fast = Fast()
    assert [0, 0] == [code_of(fast.answer(metadata="")) for _ in range(2)]
    fast.metadata.update(1, [], {T0: None}, {})
    assert fast.answer(metadata="") is None


def test_the_bytes_of_a_known_head_are_another_request_in_another_version() -> None:
    fast = Fast()
    assert [0, 0] == [code_of(fast.answer(metadata="", version=v)) for v in (9, 8)]
    frame = bytearray(fast.frame(metadata=""))
    for version in (7, 10):
        frame[2:4] = struct.pack(">h", version)
        assert fast.path.answer(memoryview(frame), fast.session) is None
    assert 0 == code_of(fast.answer(metadata="", version=8))


def test_no_more_heads_are_kept_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.api.fast_offset_commit.COMMIT_HEADS_KEPT", 3)
    fast = Fast()
    counts = []
    for number in range(5):
        assert 0 == code_of(fast.answer(client_id=f"app-{number}"))
        counts.append(len(fast.path._heads))
    assert [1, 2, 3, 1, 2] == counts


def test_a_commit_with_metadata_drops_no_heads_that_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("engine.api.fast_offset_commit.COMMIT_HEADS_KEPT", 2)
    fast = Fast()
    for client_id in ("a", "b"):
        fast.answer(client_id=client_id, metadata="")
    heads = dict(fast.path._heads)
    for version in (9, 8):
        assert 0 == code_of(fast.answer(client_id="a", metadata="note", version=version))
        assert heads.keys() == fast.path._heads.keys()


def test_a_group_of_members_refuses_a_commit_without_one() -> None:
    fast = Fast()
    fast.stage.stable()
    written = len(fast.stage.log.base_sequences)
    assert 25 == code_of(fast.answer())
    assert written == len(fast.stage.log.base_sequences)
