"""Archives of Java's classes: who makes one, who reads it, and what is left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.analysis.class_archive import ClassArchive, class_archive


def _made(folder: Path, key: str = "k") -> ClassArchive:
    archive = ClassArchive(str(folder), key)
    (option,) = archive.options()
    assert archive.is_made
    Path(option.partition("=")[2]).write_bytes(b"classes")
    return archive


def test_the_first_makes_an_archive_that_the_others_read(tmp_path: Path) -> None:
    _made(tmp_path / "spark").keep(0)
    later = ClassArchive(str(tmp_path / "spark"), "k")
    assert [f"-XX:SharedArchiveFile={tmp_path}/spark/k.jsa"] == later.options()
    assert not later.is_made
    assert ["k.jsa"] == os.listdir(tmp_path / "spark")
    assert 0o700 == (tmp_path / "spark").stat().st_mode & 0o777


@pytest.mark.parametrize("exit_code", [1, None])
def test_what_a_jvm_leaves_that_failed_is_not_kept(tmp_path: Path, exit_code: int | None) -> None:
    _made(tmp_path).keep(exit_code)
    assert [] == os.listdir(tmp_path)
    assert ClassArchive(str(tmp_path), "k").options()


def test_a_java_without_archives_is_not_tried_again(tmp_path: Path) -> None:
    archive = ClassArchive(str(tmp_path), "k")
    assert archive.options()
    archive.keep(0)
    assert ["k.none"] == os.listdir(tmp_path)
    assert [] == ClassArchive(str(tmp_path), "k").options()
    assert ClassArchive(str(tmp_path), "other").options()


def test_a_jvm_that_was_killed_before_it_wrote_says_nothing_of_its_java(tmp_path: Path) -> None:
    archive = ClassArchive(str(tmp_path), "k")
    archive.options()
    archive.keep(None)
    assert [] == os.listdir(tmp_path)


def test_an_archive_that_others_may_write_is_not_read(tmp_path: Path) -> None:
    _made(tmp_path).keep(0)
    (tmp_path / "k.jsa").chmod(0o666)
    (option,) = ClassArchive(str(tmp_path), "k").options()
    assert option.startswith("-XX:ArchiveClassesAtExit=")


def test_a_home_that_cannot_be_written_has_none(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert [] == ClassArchive(str(tmp_path / "file" / "spark"), "k").options()


def test_what_nobody_uses_goes(tmp_path: Path) -> None:
    now_s, day_s = (tmp_path / "..").stat().st_mtime, 86_400
    ages = {"a.jsa": 31, "b.jsa": 29, "c.7.new": 1, "d.none": 31, "foreign": 99}
    for name, days in ages.items():
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (0, now_s - days * day_s))
    _made(tmp_path).keep(0)
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
        options.append(class_archive(str(java), str(tmp_path / home)).options()[0])
    assert [3, True] == [len(set(options)), options[2] == options[3]]
