"""A start takes over no foreign folder, and a removal takes nothing that no cluster made."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.cluster import daemon
from engine.cluster.data_directory import DataDirectory
from engine.cluster.ownership import FolderInUse, MetadataLost, broker_directories, check_start
from engine.cluster.plan import ClusterPlan
from engine.host.real import RealFiles

FILES = RealFiles()
PLAN = ClusterPlan()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "cluster"
    folder.mkdir()
    return folder


@pytest.fixture
def data(folder: Path) -> DataDirectory:
    return DataDirectory(FILES, str(folder))


def _partition(folder: Path, name: str = "t-0") -> Path:
    partition = folder / "broker-1" / name
    partition.mkdir(parents=True)
    for file in ("00000000000000000000.log", "00000000000000000000.index", "partition.metadata"):
        (partition / file).write_bytes(b"x")
    return partition


def test_a_folder_with_other_files_is_refused(data: DataDirectory, folder: Path) -> None:
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(FolderInUse, match=r"other files \(notes\.txt\) and no cluster"):
        check_start(data, FILES, PLAN)
    assert ["notes.txt"] == [path.name for path in folder.iterdir()]


def test_an_empty_folder_and_what_a_start_left_are_taken(data: DataDirectory, folder: Path) -> None:
    check_start(data, FILES, PLAN)
    for name in ("cluster.log", "cluster.lock", "cluster.start", "lost+found"):
        (folder / name).write_text("")
    check_start(data, FILES, PLAN)
    check_start(DataDirectory(FILES, f"{folder}/new"), FILES, PLAN)


def test_directories_are_reported_by_their_brokers(data: DataDirectory, folder: Path) -> None:
    for name in ("broker-10", "broker-2-3", "broker-2", "broker-2-2", "broker-2-x", "broker-"):
        (folder / name).mkdir()
    (folder / "broker-3").write_text("no directory")
    two = [f"{folder}/broker-2", f"{folder}/broker-2-2", f"{folder}/broker-2-3"]
    assert {2: two, 10: [f"{folder}/broker-10"]} == broker_directories(data, FILES)


def test_all_log_directories_of_a_broker_are_removed(data: DataDirectory, folder: Path) -> None:
    data.write_plan(PLAN._replace(log_dir_count=2))
    _partition(folder).rename(folder / "t-0")
    (folder / "broker-1-2").mkdir()
    (folder / "t-0").rename(folder / "broker-1-2" / "t-0")
    assert [] == daemon.destroy(data, FILES)
    assert not folder.exists()


def test_log_directories_of_the_plan_are_nothing_foreign(data: DataDirectory, folder: Path) -> None:
    (folder / "disk-1").mkdir()
    check_start(data, FILES, ClusterPlan(settings={"log.dirs": f"{folder}/disk-1"}))


@pytest.mark.parametrize("name", ["broker-1", "znodes.sqlite"])
def test_a_cluster_without_its_plan_is_to_be_repaired(
    data: DataDirectory, folder: Path, name: str
) -> None:
    (folder / name).mkdir()
    with pytest.raises(MetadataLost, match=r"lost its cluster\.json") as caught:
        check_start(data, FILES, PLAN)
    assert "kctl cluster repair --data" in str(caught.value.hint)


@pytest.mark.parametrize("content", [None, b""])
def test_logs_without_their_store_are_to_be_repaired(
    data: DataDirectory, folder: Path, content: bytes | None
) -> None:
    data.write_plan(PLAN)
    check_start(data, FILES, PLAN)
    _partition(folder)
    (folder / "broker-1" / "meta.properties").write_text("version=0\nbroker.id=1\n")
    if content is not None:
        (folder / "znodes.sqlite").write_bytes(content)
    with pytest.raises(MetadataLost, match=r"lost its znodes\.sqlite"):
        check_start(data, FILES, PLAN)


def test_a_store_whose_log_alone_was_written_is_there(data: DataDirectory, folder: Path) -> None:
    data.write_plan(PLAN)
    _partition(folder)
    (folder / "broker-1" / "meta.properties").write_text("version=0\nbroker.id=1\n")
    (folder / "znodes.sqlite").write_bytes(b"")
    (folder / "znodes.sqlite-wal").write_bytes(b"frames")
    check_start(data, FILES, PLAN)


def test_a_removal_leaves_and_names_what_no_broker_made(data: DataDirectory, folder: Path) -> None:
    data.write_plan(PLAN)
    partition = _partition(folder)
    _partition(folder, "gone-0.0123456789abcdef0123456789abcdef-delete")
    (folder / "broker-1" / "meta.properties").write_text("version=0\n")
    kept = [
        folder / "broker-1" / "report.pdf",
        folder / "notes.txt",
        partition / "mine.txt",
    ]
    for path in kept:
        path.write_text("mine")
    assert sorted(map(str, kept)) == daemon.destroy(data, FILES)
    left = [path for path in folder.rglob("*") if path.is_file()]
    assert sorted(kept) == sorted(left)


def test_links_are_not_followed_by_a_removal(
    data: DataDirectory, folder: Path, tmp_path: Path
) -> None:
    data.write_plan(PLAN)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "00000000000000000000.log").write_bytes(b"x")
    _partition(folder)
    (folder / "broker-1" / "t-1").symlink_to(elsewhere)
    assert [f"{folder}/broker-1/t-1"] == daemon.destroy(data, FILES)
    assert (elsewhere / "00000000000000000000.log").exists()
    assert not (folder / "broker-1" / "t-0").exists()


def test_a_log_directory_that_is_a_link_stays(
    data: DataDirectory, folder: Path, tmp_path: Path
) -> None:
    data.write_plan(PLAN)
    elsewhere = tmp_path / "disk"
    elsewhere.mkdir()
    (folder / "broker-1").symlink_to(elsewhere)
    assert [f"{folder}/broker-1"] == daemon.destroy(data, FILES)


def test_a_cluster_with_a_damaged_plan_can_be_removed(data: DataDirectory, folder: Path) -> None:
    data.write_plan(PLAN)
    (folder / "cluster.json").write_text("{")
    (folder / "znodes.sqlite.damaged-17").write_text("set aside by a repair")
    _partition(folder)
    assert [] == daemon.destroy(data, FILES)
    assert not folder.exists()
