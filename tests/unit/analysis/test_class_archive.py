"""Archives of Java's classes: who makes one, who reads it, and what is left."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from engine.analysis import spark_jvm
from engine.analysis.class_archive import ClassArchive, class_archive
from engine.analysis.spark_jvm import (
    PORT_VARIABLE,
    SECRET_VARIABLE,
    SparkFailed,
    _spark_home,
    end_jvms,
    keeps_classes,
    start_jvm,
)
from engine.analysis.spark_session import stop_session_after


def _made(folder: Path, key: str = "k") -> ClassArchive:
    archive = ClassArchive(str(folder), key)
    (option,) = archive.prepare_options()
    assert archive.is_made
    Path(option.partition("=")[2]).write_bytes(b"classes")
    return archive


def test_the_first_makes_an_archive_that_the_others_read(tmp_path: Path) -> None:
    _made(tmp_path / "spark").keep(0)
    later = ClassArchive(str(tmp_path / "spark"), "k")
    assert [f"-XX:SharedArchiveFile={tmp_path}/spark/k.jsa"] == later.prepare_options()
    assert not later.is_made
    assert ["k.jsa"] == os.listdir(tmp_path / "spark")
    assert 0o700 == (tmp_path / "spark").stat().st_mode & 0o777


@pytest.mark.parametrize("exit_code", [1, None])
def test_what_a_jvm_leaves_that_failed_is_not_kept(tmp_path: Path, exit_code: int | None) -> None:
    _made(tmp_path).keep(exit_code)
    assert [] == os.listdir(tmp_path)
    assert ClassArchive(str(tmp_path), "k").prepare_options()


def test_a_java_without_archives_is_not_tried_again(tmp_path: Path) -> None:
    archive = ClassArchive(str(tmp_path), "k")
    assert archive.prepare_options()
    archive.keep(0)
    assert ["k.none"] == os.listdir(tmp_path)
    assert [] == ClassArchive(str(tmp_path), "k").prepare_options()
    assert ClassArchive(str(tmp_path), "other").prepare_options()


@pytest.mark.parametrize("exit_code", [1, -9, 143])
def test_a_jvm_without_room_and_one_that_was_ended_say_nothing_of_their_java(
    tmp_path: Path, exit_code: int
) -> None:
    archive = ClassArchive(str(tmp_path), "k")
    archive.prepare_options()
    archive.keep(exit_code)
    assert [] == os.listdir(tmp_path)


def test_what_a_process_of_the_same_number_left_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / f"k.{os.getpid()}.new").write_bytes(b"half of it")
    archive = ClassArchive(str(tmp_path), "k")
    archive.prepare_options()
    archive.keep(0)
    assert ["k.none"] == os.listdir(tmp_path)


def test_a_jvm_that_was_killed_before_it_wrote_says_nothing_of_its_java(tmp_path: Path) -> None:
    archive = ClassArchive(str(tmp_path), "k")
    archive.prepare_options()
    archive.keep(None)
    assert [] == os.listdir(tmp_path)


def test_an_archive_that_others_may_write_is_not_read(tmp_path: Path) -> None:
    _made(tmp_path).keep(0)
    (tmp_path / "k.jsa").chmod(0o666)
    (option,) = ClassArchive(str(tmp_path), "k").prepare_options()
    assert option.startswith("-XX:ArchiveClassesAtExit=")


def test_a_home_that_cannot_be_written_has_none(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert [] == ClassArchive(str(tmp_path / "file" / "spark"), "k").prepare_options()


def test_a_folder_that_cannot_be_written_is_not_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What a file system that is mounted for reading answers, to root as well.
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
    assert [] == ClassArchive(str(tmp_path), "k").prepare_options()


def test_a_user_without_a_home_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert [] == ClassArchive("~/.cache/kctl/spark", "k").prepare_options()
    assert [] == os.listdir(tmp_path)


def test_what_nobody_uses_goes(tmp_path: Path) -> None:
    now_s, day_s = (tmp_path / "..").stat().st_mtime, 86_400
    ages = {"a.jsa": 31, "b.jsa": 29, "c.7.new": 1, "d.none": 31, "foreign": 99}
    for name, days in ages.items():
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (0, now_s - days * day_s))
    (tmp_path / "0.jsa").symlink_to("gone")
    _made(tmp_path).keep(0)
    (tmp_path / "0.jsa").unlink()
    assert ["b.jsa", "foreign", "k.jsa"] == sorted(os.listdir(tmp_path))


def test_the_key_is_that_of_java_and_of_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    java = tmp_path / "java"
    options = []
    for content, home in (("1", "a"), ("22", "a"), ("22", "b"), ("22", "b")):
        java.write_text(content)
        os.utime(java, (0, 0))
        options.append(class_archive(str(java), str(tmp_path / home)).prepare_options()[0])
    assert [3, True] == [len(set(options)), options[2] == options[3]]


def test_the_key_is_that_of_spark_s_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    jars = tmp_path / "spark" / "jars"
    jars.mkdir(parents=True)
    options = []
    for changed_s in (1, 2, 2):
        os.utime(jars, (0, changed_s))
        options.append(class_archive("java", str(tmp_path / "spark")).prepare_options()[0])
    assert [2, True] == [len(set(options)), options[1] == options[2]]


_JAVA = """#!/bin/sh
case "$*" in
-version) echo 'version "17.0.1"' >&2; exit ;;
*SharedArchiveFile*)
    for option; do
        case $option in -XX:SharedArchiveFile=*) grep -q whole "${option#*=}" || {
            echo crash >>"$0.log"; kill -ABRT $$; } ;; esac
    done ;;
*) echo start >>"$0.log" ;;
esac
printf '\\0\\0\\1\\1\\0\\0\\0\\2ab' >"$_PYSPARK_DRIVER_CONN_INFO_PATH.new"
mv "$_PYSPARK_DRIVER_CONN_INFO_PATH.new" "$_PYSPARK_DRIVER_CONN_INFO_PATH"
cat
for option; do
    case $option in -XX:ArchiveClassesAtExit=*) echo whole >"${option#*=}" ;; esac
done
"""


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a program of Java that crashes with an archive that is not whole.

    Its JVMs are in a list of their own: `end_jvms` would end the one of the Spark tests in this
    process.
    """
    pytest.importorskip("pyspark")
    monkeypatch.setattr(spark_jvm, "_jvms", [])
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(_JAVA)
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in (PORT_VARIABLE, SECRET_VARIABLE):
        monkeypatch.setenv(name, "")
    return java


def test_an_archive_that_a_jvm_crashes_with_is_removed(java: Path, tmp_path: Path) -> None:
    archive = class_archive(str(java), _spark_home())
    Path(archive.prepare_options()[0].partition("=")[2]).write_bytes(b"the first half")
    archive.keep(0)
    start_jvm({})
    assert (["crash", "start"], "257") == (_starts(java), os.environ[PORT_VARIABLE])
    assert not keeps_classes()
    end_jvms()
    assert [] == os.listdir(tmp_path / "cache" / "kctl" / "spark")


def test_a_jvm_that_fails_in_another_way_is_started_once(java: Path) -> None:
    java.write_text(_JAVA.replace("echo start", "exit 3; echo start"))
    with pytest.raises(SparkFailed, match="exit code 3"):
        start_jvm({})
    java.write_text(_JAVA.replace("echo start", "kill -ABRT $$; echo start"))
    with pytest.raises(SparkFailed, match="exit code -6"):
        start_jvm({})
    assert not keeps_classes()


class _Session:
    is_stopped = False

    def stop(self) -> None:
        self.is_stopped = True


@pytest.mark.parametrize("fails", [False, True])
def test_a_command_that_fails_leaves_its_archive_to_the_next(
    fails: bool, java: Path, tmp_path: Path
) -> None:
    session, steps = _Session(), list[str]()
    start_jvm({})
    with suppress(LookupError), stop_session_after(cast(Any, session), steps.append):
        if fails:
            raise LookupError("no such column")
    assert ["keeping Spark's classes for the next start, once"] == steps
    (name,) = os.listdir(tmp_path / "cache" / "kctl" / "spark")
    assert (".jsa", not fails) == (name[-4:], session.is_stopped)
    start_jvm({})
    with stop_session_after(cast(Any, session), steps.append):
        pass
    assert 1 == len(steps)
    end_jvms()


def test_an_interrupt_waits_for_no_archive(java: Path, tmp_path: Path) -> None:
    start_jvm({})
    steps: list[str] = []
    with pytest.raises(KeyboardInterrupt), stop_session_after(cast(Any, _Session()), steps.append):
        raise KeyboardInterrupt
    assert [] == steps
    end_jvms()


def test_an_interrupt_while_classes_are_kept_leaves_the_result(
    java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_jvm({})
    wait, waits_s = subprocess.Popen.wait, list[float | None]()

    def interrupted(process: subprocess.Popen[bytes], timeout: float | None = None) -> int:
        waits_s.append(timeout)
        if timeout is not None:
            raise KeyboardInterrupt
        return wait(process)

    monkeypatch.setattr(subprocess.Popen, "wait", interrupted)
    with stop_session_after(cast(Any, _Session()), lambda step: None):
        pass
    assert [120, None] == waits_s
    assert not keeps_classes()


def _starts(java: Path) -> list[str]:
    return Path(f"{java}.log").read_text().split()


def test_a_crash_removes_no_archive_that_was_not_read(tmp_path: Path) -> None:
    _made(tmp_path).keep(0)
    (tmp_path / "k.jsa").chmod(0o666)
    archive = ClassArchive(str(tmp_path), "k")
    archive.prepare_options()
    assert not archive.discard()
    assert ["k.jsa"] == os.listdir(tmp_path)


def test_an_archive_that_is_read_is_in_use(tmp_path: Path) -> None:
    _made(tmp_path).keep(0)
    os.utime(tmp_path / "k.jsa", (0, 0))
    ClassArchive(str(tmp_path), "k").prepare_options()
    assert (tmp_path / "k.jsa").stat().st_mtime > 0
