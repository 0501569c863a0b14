"""Comparison of two clusters' files and answers: differences that masks must not hide."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compat.cluster.folder_view import folder_differences, read_folder
from tests.compat.wire.pair import Pair

_DIRECTORIES = {"a-0/": "", "b-0/": ""}
_CHECKPOINT = "replication-offset-checkpoint"


def _differs(name: str, real: str, ours: str) -> bool:
    return bool(folder_differences({**_DIRECTORIES, name: real}, {**_DIRECTORIES, name: ours}))


def test_partitions_of_a_checkpoint_come_in_any_order() -> None:
    assert not _differs(_CHECKPOINT, "0\n2\nb 0 7\na 0 5\n", "0\n2\na 0 5\nb 0 7\n")


def test_a_checkpoint_of_kafka_keeps_partitions_that_are_gone() -> None:
    assert not _differs(_CHECKPOINT, "0\n2\ngone 0 7\na 0 5\n", "0\n1\na 0 5\n")


@pytest.mark.parametrize(
    "ours", ["1\n1\na 0 5\n", "0\n2\na 0 5\n", "0\n1\na 0 6\n", "0\n1\na 0 5\nx\n", "0\n"]
)
def test_versions_counts_offsets_and_odd_lines_of_a_checkpoint_are_differences(ours: str) -> None:
    assert _differs(_CHECKPOINT, "0\n1\na 0 5\n", ours)


def test_an_empty_checkpoint_equals_one_without_entries() -> None:
    assert not _differs(_CHECKPOINT, "0\n0\n", "")
    assert _differs(_CHECKPOINT, "0\n1\na 0 5\n", "")


def test_leader_epochs_come_in_their_order() -> None:
    real, ours = "0\n2\n0 0\n1 5\n", "0\n2\n1 5\n0 0\n"
    assert _differs("a-0/leader-epoch-checkpoint", real, ours)


def test_small_files_of_coordinators_are_compared_as_texts(tmp_path: Path) -> None:
    folder = tmp_path / "__transaction_state-0"
    folder.mkdir()
    (folder / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (folder / "00000000000000000000.log").write_bytes(b"123")
    shown = read_folder(tmp_path)
    assert shown["__transaction_state-0/leader-epoch-checkpoint"] == "0\n1\n0 0\n"
    assert shown["__transaction_state-0/00000000000000000000.log"] == 3


@pytest.mark.parametrize(
    ("behind_ms", "differs_ms", "is_difference"),
    [(0, 5, False), (0, 60_000, True), (10**9, 5, True)],
)
def test_only_times_of_this_run_may_differ_a_little(
    behind_ms: int, differs_ms: int, *, is_difference: bool
) -> None:
    pair = Pair("127.0.0.1:1", "127.0.0.1:2")
    real = pair.now_ms - behind_ms
    pair.compare_values("ListOffsets", {"timestamp": real}, {"timestamp": real + differs_ms})
    assert is_difference is bool(pair.differences)
