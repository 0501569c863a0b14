"""How the compiled walk comes into a process, and what keeps it out."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.host.lock_file import lock_file
from engine.host.memory import ManualClock
from engine.host.memory_network import MemoryTimers
from engine.limits import WALK_COMPILE_DELAY_MS, WALK_COMPILE_POLL_MS, WALK_TAKE_UP_DELAY_MS
from engine.native import compiled_walk
from engine.native.compiled_walk import (
    CompiledWalkLoader,
    kept_walk_path,
    start_compiler,
)
from engine.native.flat_code import keep_flat
from engine.native.flat_compiler import KERNELS, WALK, compile_flat
from engine.native.record_walk import WalkTier, walk_plainly
from tests.compiled_walk import compiled_walk_here


class Beside:
    """A process with its clock, and a compiler that is only said to run."""

    def __init__(self, pid: int | None = None) -> None:
        self.clock = ManualClock()
        self.timers = MemoryTimers(self.clock)
        self.started = 0
        self.pid = pid
        CompiledWalkLoader(self.timers, self.clock, self._start).begin()

    def _start(self) -> int | None:
        self.started += 1
        return self.pid

    def after(self, duration_ms: int) -> None:
        self.clock.advance(duration_ms)
        self.timers.run_until_idle()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(WalkTier, "walk", staticmethod(walk_plainly))
    yield tmp_path


def _put_there() -> bool:
    """Put the machine's code into the cache of this test; False where there is none."""
    there = kept_walk_path()
    known = os.environ.pop("XDG_CACHE_HOME")
    here, compiled = kept_walk_path(), compiled_walk_here()
    os.environ["XDG_CACHE_HOME"] = known
    if there is None or here is None or compiled is None:
        return False
    return keep_flat(there, Path(here).read_bytes()[64:])


def _is_compiled() -> bool:
    return WalkTier.walk is not walk_plainly


@pytest.mark.usefixtures("cache")
def test_kept_code_is_taken_up_a_moment_after_the_start() -> None:
    if not _put_there():
        pytest.skip("compiled walks run on Linux alone, on x86-64 and arm64")
    beside = Beside()
    beside.after(WALK_TAKE_UP_DELAY_MS - 1)
    assert not _is_compiled()
    beside.after(1)
    assert _is_compiled()
    beside.after(WALK_COMPILE_DELAY_MS)
    assert 0 == beside.started


@pytest.mark.usefixtures("cache")
def test_without_kept_code_it_is_compiled_once() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert child.stdin is not None
    beside = Beside(child.pid)
    beside.after(WALK_TAKE_UP_DELAY_MS)
    assert 0 == beside.started
    beside.after(WALK_COMPILE_DELAY_MS)
    assert 1 == beside.started
    beside.after(WALK_COMPILE_POLL_MS)
    was_put_there = _put_there()
    assert not _is_compiled()
    child.stdin.close()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    beside.after(WALK_COMPILE_POLL_MS)
    assert was_put_there == _is_compiled()
    assert 1 == beside.started
    child.wait()


@pytest.mark.usefixtures("cache")
def test_a_compiler_that_cannot_be_started_is_not_asked_again() -> None:
    beside = Beside(None)
    for _ in range(3):
        beside.after(WALK_COMPILE_DELAY_MS)
    assert (1, False) == (beside.started, _is_compiled())


@pytest.mark.usefixtures("cache")
def test_what_another_brokers_compiler_makes_is_taken_up_too() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    beside = Beside(child.pid)
    beside.after(WALK_TAKE_UP_DELAY_MS)
    beside.after(WALK_COMPILE_DELAY_MS)
    beside.after(WALK_COMPILE_POLL_MS)
    was_put_there = _put_there()
    beside.after(WALK_COMPILE_POLL_MS)
    assert was_put_there == _is_compiled()
    child.wait()


@pytest.mark.usefixtures("cache")
def test_code_that_is_not_the_walk_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_walk, "load_walk", lambda path: lambda data, position, count: None)
    beside = Beside()
    beside.after(WALK_TAKE_UP_DELAY_MS + WALK_COMPILE_DELAY_MS)
    assert (0, False) == (beside.started, _is_compiled())


def test_without_numba_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_walk, "find_spec", lambda name: None)
    assert start_compiler() is None


@pytest.mark.usefixtures("cache")
def test_a_second_compiler_ends_at_once() -> None:
    paths = [path for kernel in KERNELS if (path := kernel.path()) is not None]
    if not paths:
        pytest.skip("compiled walks run on Linux alone, on x86-64 and arm64")
    assert len(KERNELS) == len(paths)
    folder = Path(paths[0]).parent
    folder.mkdir(parents=True)
    locks = [f"{path}.lock" for path in paths]
    releases = [lock_file(lock) for lock in locks]
    done = subprocess.run([sys.executable, "-m", "engine.native.flat_compiler"], check=False)
    for release in releases:
        release()
    assert 1 == done.returncode
    # It has made nothing, not even on trial.
    assert set(locks) >= set(map(str, folder.iterdir()))


def test_what_is_compiled_is_tried_before_it_is_kept(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.native.flat_compiler.is_walk_right", lambda walk: False)
    path = f"{cache}/kctl/native/walk"
    assert not compile_flat(WALK, path)
    assert [] == os.listdir(os.path.dirname(path))
