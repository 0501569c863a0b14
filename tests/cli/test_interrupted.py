"""Commands with processes of their own, interrupted at any time of their life."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.shell import KCTL, Shell

#: Each a little later in the life of the command: imports, workers that start, seeds that run.
DELAYS_S = (0.2, 0.4, 0.6, 0.8, 1.0, 1.3)


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
    for delay_s in DELAYS_S:
        process = subprocess.Popen(
            [*KCTL, "sim", "run", "--seeds", "400", "--jobs", "2"],
            env=shell.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        with process:
            time.sleep(delay_s)
            for _ in range(count):
                os.killpg(process.pid, signal.SIGINT)
                time.sleep(0.02)
            process.wait(timeout=2)
            assert process.stderr is not None
            told = process.stderr.read()
        # Before kctl's own first line Python ends by the signal itself.
        is_early = process.returncode == -signal.SIGINT and delay_s < 0.3
        assert 130 == process.returncode or is_early, (delay_s, told)
        assert is_early or "Traceback" not in told, (delay_s, told)
        assert [] == group_of(process.pid), delay_s
