"""Commands with processes of their own, interrupted at any time of their life."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.interrupting import CASES, HOWS, interrupt, problems, whole_result
from tests.cli.shell import KCTL, Shell

#: After the first process of its own: workers that start, import, run seeds. Each way is tried at
#: every second of them; `interrupting.py` tries both at all, by hand.
DELAYS_S = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)


def group_of(leader: int) -> list[int]:
    """Return the processes of a process group."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                state = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(state[2]) == leader and state[0] != "Z":
                found.append(int(name))
    return found


@pytest.mark.parametrize("count", [1, 2], ids=["once", "twice"])
def test_a_campaign_of_seeds_ends_with_ctrl_c(tmp_path: Path, count: int) -> None:
    shell = Shell(tmp_path)
    for delay_s in DELAYS_S[count - 1 :: 2]:
        process = subprocess.Popen(
            [*KCTL, "sim", "run", "--seeds", "400", "--jobs", "2"],
            env=shell.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        with process:
            while len(group_of(process.pid)) < 2:
                assert process.poll() is None
            time.sleep(delay_s)
            for _ in range(count):
                os.killpg(process.pid, signal.SIGINT)
                time.sleep(0.02)
            process.wait(timeout=2)
            assert process.stderr is not None
            told = process.stderr.read()
        assert 130 == process.returncode, (delay_s, told)
        assert "Traceback" not in told, (delay_s, told)
        # What the standard library has begun reads the end of its pipe, a moment later.
        deadline_s = time.monotonic() + 2
        while group_of(process.pid):
            assert time.monotonic() < deadline_s, delay_s


#: A few moments of the sweep that `interrupting.py` makes by hand: those at which something is
#: there that has to go.
MOMENTS = {
    "cluster start": (0.5, 0.9),
    "cluster start --processes": (0.8, 1.4),
    "cluster start --foreground": (0.9,),
    "retention run --dir": (0.6, 0.8),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_nothing_is_left_of_a_command_that_is_interrupted(tmp_path: Path, name: str) -> None:
    shell = Shell(tmp_path)
    case = next(case for case in CASES if case.name == name)
    case.prepare(shell)
    try:
        whole = whole_result(shell, case)
        for how in HOWS:
            for at_s in MOMENTS[name]:
                ending = interrupt(shell, case, how, at_s)
                assert [] == problems(case, how, ending, whole), (how, at_s)
                shell.run("cluster", "stop")
            if name.startswith("cluster start"):
                # Each way begins without a cluster, as the first does.
                shell.run("cluster", "destroy", "-y")
    finally:
        shell.run("cluster", "destroy", "-y")
