"""Where new logs are made."""

from __future__ import annotations

import pytest

from engine.host.memory import MemoryFiles
from engine.log.directory.log_directory import LogDirectory
from engine.log.directory.log_placement import LogPlacement
from engine.log.directory.log_refusals import KafkaStorageError
from engine.model import TopicPartition
from engine.naming import DirectoryKind

KEY = TopicPartition("orders", 3)


class Entropy:
    """Random bytes that are all the same."""

    def random_bytes(self, count: int) -> bytes:
        """Return so many bytes."""
        return b"\xab" * count

    def random_below(self, bound: int) -> int:
        """Return the lowest number."""
        return 0


@pytest.fixture
def directories() -> list[LogDirectory]:
    files = MemoryFiles()
    return [LogDirectory(files, path, object) for path in ("/d1", "/d2", "/d3")]  # type: ignore[arg-type]


@pytest.fixture
def placement() -> LogPlacement:
    counts = {"/d1": 2, "/d2": 1, "/d3": 5}
    return LogPlacement(Entropy(), lambda directory: counts[directory.path])


def test_a_new_log_goes_to_the_directory_with_the_fewest_logs(
    placement: LogPlacement, directories: list[LogDirectory]
) -> None:
    assert placement.choose_directory(KEY, directories, None).path == "/d2"


def test_a_preference_counts_once(placement: LogPlacement, directories: list[LogDirectory]) -> None:
    placement.prefer(KEY, "/d3")
    found = [placement.choose_directory(KEY, directories, None).path for _ in range(2)]
    assert found == ["/d3", "/d2"]


def test_the_directory_of_the_call_comes_before_a_preference(
    placement: LogPlacement, directories: list[LogDirectory]
) -> None:
    placement.prefer(KEY, "/d3")
    assert placement.choose_directory(KEY, directories, "/d1").path == "/d1"


def test_a_directory_that_is_offline_gets_no_log(
    placement: LogPlacement, directories: list[LogDirectory]
) -> None:
    with pytest.raises(KafkaStorageError, match="/d1 is offline"):
        placement.choose_directory(KEY, directories[1:], "/d1")
    with pytest.raises(KafkaStorageError, match="every log directory is offline"):
        placement.choose_directory(KEY, [], None)


def test_folders_are_named_by_partition_and_kind(placement: LogPlacement) -> None:
    assert placement.create_folder_name(KEY, DirectoryKind.LIVE) == "orders-3"
    unique_id = "ab" * 16
    assert placement.create_folder_name(KEY, DirectoryKind.FUTURE) == f"orders-3.{unique_id}-future"
