"""Retention of a directory, beside what a broker of Kafka made of the same files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from shutil import copytree

import pytest

from engine.broker.host import real_directory_lock
from engine.config.settings import BrokerSettings
from engine.config.topic_config import TopicConfig
from engine.forecast.directory_copy import DirectoryBusy, TargetNotEmpty, copied_directory
from engine.forecast.directory_history import read_histories
from engine.forecast.opened_directory import DirectoryHost, NoBrokersDirectory
from engine.forecast.retention_forecast import forecast_retention
from engine.forecast.retention_run import RetainedLog, run_retention
from engine.host.memory import ManualClock, MemoryFiles, SeededEntropy
from engine.host.real import RealFiles
from engine.log.directory.log_dir import find_log_dir
from engine.log.directory.log_directory import LogDirectoryLocked
from engine.log.log_config import LogConfig
from engine.log.topic_log_config import build_log_config
from tests.golden_cases import GOLDEN, case, case_dir

CASE = case("retention")
NOW_MS = CASE["retention_ran_between_ms"][1]
#: Of the others records were deleted by request.
BY_SETTINGS = ("ret-size", "ret-time", "ret-both", "ret-expired", "ret-none")


def config_of(topic: str) -> LogConfig:
    told = CASE["topics"].get(topic, "")
    overrides = {"retention.ms": "-1", **dict(word.split("=") for word in told.split(";") if word)}
    config = TopicConfig.of(overrides, BrokerSettings({}))
    return build_log_config(config, producer_id_expiration_ms=86_400_000)


@pytest.fixture
def directory(tmp_path: Path) -> str:
    return str(copytree(case_dir("retention") / "before", tmp_path / "logs"))


def host() -> DirectoryHost:
    return DirectoryHost(
        RealFiles(), ManualClock(wall_ms=NOW_MS), SeededEntropy(1), real_directory_lock()
    )


def run(path: str, is_wanted: Callable[[str], bool] = lambda topic: True) -> dict[str, RetainedLog]:
    logs: list[RetainedLog] = []
    run_retention(host(), path, config_of, is_wanted, logs.append)
    return {log.topic_partition.topic: log for log in logs}


def test_logs_start_where_those_of_kafka_do(directory: str) -> None:
    logs = run(directory)
    for topic in BY_SETTINGS:
        truth = CASE["offsets"][topic]
        log = logs[topic]
        assert (truth["log_start_offset"], truth["log_end_offset"]) == (
            log.log_start_offset,
            log.log_end_offset,
        )


def test_files_have_the_names_and_sizes_of_those_of_kafka(directory: str) -> None:
    # Kafka's broker took a new leader epoch meanwhile, ours only looked: bytes differ by that.
    # A second start takes the snapshots at log starts away, in both.
    run(directory)
    run(directory)
    truth = json.loads((GOLDEN / "retention/truth/reopened.files.json").read_text())
    for topic in BY_SETTINGS:
        here = {path.name: path.stat().st_size for path in Path(directory, f"{topic}-0").iterdir()}
        there = {
            name.removeprefix(f"{topic}-0/"): size
            for name, (size, _) in truth.items()
            if name.startswith(f"{topic}-0/")
        }
        # Where nothing is left, the new epoch is all that Kafka's file of epochs has.
        epochs = "leader-epoch-checkpoint"
        assert there | {epochs: 0} == here | {epochs: 0}


def test_a_forecast_shows_what_a_run_frees(directory: str) -> None:
    logs = read_histories(RealFiles(), find_log_dir(RealFiles(), directory))
    told = {log.topic_partition.topic: log for log in logs}
    for topic, log in run(directory).items():
        forecast = forecast_retention(told[topic], config_of(topic), NOW_MS)
        assert (log.freed_bytes, log.freed_segments, log.reasons) == (
            forecast.freed_bytes,
            forecast.freed_segments,
            tuple(forecast.freed),
        )


def test_topics_that_are_not_wanted_keep_everything(directory: str) -> None:
    assert ["ret-size"] == list(run(directory, lambda topic: topic == "ret-size"))
    assert 11 == len(list(Path(directory, "ret-time-0").glob("*.log")))


def test_a_second_run_finds_nothing(directory: str) -> None:
    run(directory)
    assert [0] * 7 == [log.freed_segments for log in run(directory).values()]


def test_what_is_not_replicated_stays(directory: str) -> None:
    checkpoint = Path(directory, "replication-offset-checkpoint")
    checkpoint.write_text("0\n1\nret-expired 0 100\n")
    assert 78 == run(directory)["ret-expired"].log_start_offset


def test_a_directory_in_use_and_one_of_nobody_are_refused(directory: str, tmp_path: Path) -> None:
    with pytest.raises(NoBrokersDirectory, match=r"no meta\.properties"):
        run(f"{directory}/ret-size-0")
    Path(directory, "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")
    with pytest.raises(NoBrokersDirectory, match="without ZooKeeper"):
        run(directory)

    def refuse(path: str) -> Callable[[], None]:
        raise LogDirectoryLocked(path)

    Path(directory, "meta.properties").write_text("version=0\ncluster.id=c\nbroker.id=1\n")
    with pytest.raises(LogDirectoryLocked):
        run_retention(
            host()._replace(lock=refuse), directory, config_of, lambda _: True, lambda _: None
        )


def contents(path: Path) -> dict[Path, bytes]:
    return {p.relative_to(path): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def test_a_copy_has_all_and_leaves_the_source(directory: str, tmp_path: Path) -> None:
    target = tmp_path / "copy"
    source = contents(Path(directory))
    with copied_directory(RealFiles(), directory, str(target), lambda _: False) as copy:
        assert source == contents(Path(copy))
        run(copy)
    assert source == contents(Path(directory)) != contents(target)
    full = copied_directory(RealFiles(), directory, str(target), lambda _: False)
    with pytest.raises(TargetNotEmpty, match="there is something already"), full:
        pass
    busy = copied_directory(RealFiles(), directory, str(tmp_path / "other"), lambda _: True)
    with pytest.raises(DirectoryBusy, match="a broker uses this log directory"), busy:
        pass
    assert target.is_dir()


@pytest.mark.parametrize("is_there", [False, True])
def test_of_a_copy_whose_work_is_interrupted_nothing_stays(
    directory: str, tmp_path: Path, *, is_there: bool
) -> None:
    target = tmp_path / "copy"
    if is_there:
        target.mkdir()
    copy = copied_directory(RealFiles(), directory, str(target), lambda _: False)
    with pytest.raises(KeyboardInterrupt), copy:
        assert contents(target)
        raise KeyboardInterrupt
    assert is_there == target.exists()
    assert not target.exists() or [] == list(target.iterdir())


def test_a_copy_outlives_a_power_cut() -> None:
    files = MemoryFiles()
    for path, content in (("/a/meta.properties", b"version=0\n"), ("/a/t-0/00.log", b"")):
        files.make_dir(path.rpartition("/")[0])
        files.replace_file(path, content)
    with copied_directory(files, "/a", "/b", lambda _: False):
        found = files.after_crash()
    assert (["meta.properties", "t-0"], ["00.log"]) == (
        sorted(found.list_dir("/b")),
        found.list_dir("/b/t-0"),
    )
