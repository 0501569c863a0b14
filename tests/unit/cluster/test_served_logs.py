"""Log directories of others, served from links."""

from __future__ import annotations

import errno
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from engine.cluster.data_directory import DataDirectory
from engine.cluster.plan import ClusterPlan
from engine.cluster.served_logs import (
    OnePartition,
    OtherServedCluster,
    Served,
    ServedLogs,
    SourceGone,
    SourceInUse,
    TooManyBrokers,
    check_same,
    read_served,
    remove_links,
    serve_logs,
)
from engine.host.copy_on_write import CopyOnWriteFiles
from engine.host.memory import ManualClock
from engine.host.os_errors import storage_error
from engine.host.ports import LogDirOffline
from engine.log.directory.log_dir import NoLogDirectory
from engine.log.directory.offset_checkpoint import LOG_STARTS, RECOVERY_POINTS
from tests.golden_cases import case_dir


class Stage:
    """A copied log directory, and where it is to be served from."""

    def __init__(self, folder: Path, case: str = "plain", state: str = "data") -> None:
        self.source = folder / "source"
        shutil.copytree(case_dir(case) / state, self.source)
        self.files = CopyOnWriteFiles()
        self.data = DataDirectory(self.files, str(folder / "cluster"))

    def serve(self, *sources: Path | str, is_writable: bool = False) -> Served:
        requested = self.requested(*sources, is_writable=is_writable)
        return serve_logs(self.data, self.files, ManualClock(), requested, ClusterPlan())

    def requested(self, *sources: Path | str, is_writable: bool = False) -> ServedLogs:
        return ServedLogs(tuple(map(str, sources or (self.source,))), is_writable)

    @property
    def broker(self) -> Path:
        return Path(self.data.broker_path(1))


def test_every_partition_is_links_to_its_files(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    served = stage.serve()
    assert (7, ()) == (served.partition_count, served.notes)
    assert served.log_bytes == sum(path.stat().st_size for path in stage.source.rglob("*.log"))
    for path in stage.source.glob("*-*/*"):
        link = stage.broker / path.parent.name / path.name
        assert link.is_symlink()
        assert link.resolve() == path.resolve()


def test_checkpoints_are_taken_over(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.serve()
    for name in (RECOVERY_POINTS, LOG_STARTS):
        theirs = set((stage.source / name).read_text().splitlines()[2:])
        assert theirs == set((stage.broker / name).read_text().splitlines()[2:])
    is_clean = (stage.source / ".kafka_cleanshutdown").exists()
    assert is_clean == (stage.broker / ".kafka_cleanshutdown").exists()


def test_of_several_copies_the_one_of_the_newest_epoch_counts(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "epochs", "divergent")
    served = stage.serve(*(stage.source / f"broker{n}" for n in (3, 2, 1)))
    assert served.partition_count == 3
    link = next((stage.broker / "routes-0").glob("*.log"))
    assert link.resolve().parent == (stage.source / "broker1" / "routes-0").resolve()
    assert any(note.startswith("routes-0: served from") for note in served.notes)


def test_a_folder_of_log_directories_stands_for_them(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "epochs", "divergent")
    assert stage.serve(stage.source).partition_count == 3


def test_a_cluster_serves_the_same_again_and_nothing_else(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    requested = stage.requested()
    assert not check_same(stage.data, stage.files, requested)
    stage.serve()
    assert check_same(stage.data, stage.files, requested)
    for other in (stage.requested(is_writable=True), stage.requested(tmp_path)):
        with pytest.raises(OtherServedCluster):
            check_same(stage.data, stage.files, other)
    assert read_served(stage.data, stage.files) == requested


def test_a_cluster_with_logs_of_its_own_serves_no_others(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.data.write_plan(ClusterPlan())
    with pytest.raises(OtherServedCluster, match="logs of its own"):
        check_same(stage.data, stage.files, stage.requested())
    assert read_served(stage.data, stage.files) is None


def test_a_source_that_is_gone_is_named(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.serve()
    shutil.rmtree(stage.source)
    with pytest.raises(SourceGone) as caught:
        read_served(stage.data, stage.files)
    assert caught.value.path == str(stage.source)


def test_what_is_no_copied_log_directory_is_refused(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    with pytest.raises(OnePartition) as refused:
        stage.serve(stage.source / "clicks-0")
    assert f"name the folder around it, {stage.source}" == refused.value.hint
    (tmp_path / "empty").mkdir()
    with pytest.raises(NoLogDirectory):
        stage.serve(tmp_path / "empty")
    assert not stage.broker.exists()


def test_a_directory_that_a_broker_uses_is_refused(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    lock = stage.source / ".lock"
    lock.touch()
    script = (
        "import fcntl,sys; f=open(sys.argv[1],'r+'); fcntl.lockf(f,2); print(); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(lock)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(SourceInUse):
            stage.serve()
        holder.communicate("")
    assert not stage.broker.exists()


def test_removing_the_links_leaves_the_source(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    before = sorted(path.name for path in stage.source.rglob("*"))
    stage.serve()
    remove_links(stage.data, stage.files)
    assert [] == [path for path in stage.broker.rglob("*") if path.is_symlink()]
    assert before == sorted(path.name for path in stage.source.rglob("*"))


class FailingFiles(CopyOnWriteFiles):
    """A disk that is full after so many links."""

    def __init__(self, links_left: int) -> None:
        self._links_left = links_left

    def link(self, source: str, path: str) -> None:
        if not self._links_left:
            raise storage_error(errno.ENOSPC, path, "link")
        self._links_left -= 1
        super().link(source, path)


@pytest.mark.parametrize("links_left", [0, 1, 20])
def test_what_fails_midway_leaves_nothing(tmp_path: Path, links_left: int) -> None:
    stage = Stage(tmp_path)
    stage.files = FailingFiles(links_left)
    with pytest.raises(LogDirOffline):
        stage.serve()
    assert [] == list(Path(stage.data.path).iterdir())
    stage.files = CopyOnWriteFiles()
    assert stage.serve().partition_count == 7


def test_copied_logs_are_served_by_one_broker(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    with pytest.raises(TooManyBrokers, match="3 brokers"):
        serve_logs(stage.data, stage.files, ManualClock(), stage.requested(), ClusterPlan(3))
