"""`kctl cluster start --from-logs` with real processes: the source stays as it is."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.golden_cases import case_dir
from tests.golden_dump import run_kctl

HERE = Path.cwd()


def kctl(*args: str | Path) -> tuple[int, str, str]:
    code, out, err = run_kctl([str(arg) for arg in args], HERE)
    return code, out.decode(errors="replace"), err


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("is_writable", [False, True])
def test_copied_logs_are_served_and_never_change(tmp_path: Path, is_writable: bool) -> None:
    source, data = tmp_path / "copy", tmp_path / "cluster"
    shutil.copytree(case_dir("recovery-391") / "before", source)
    before = digests(source)
    more = ["--writable"] if is_writable else []
    start = ("cluster", "start", "--from-logs", source, "--data", data, "--port", "0")
    code, out, err = kctl(*start, *more, "-o", "json")
    assert code == 0, err
    assert "serving 38 partitions" in err
    try:
        server = json.loads(out)["bootstrap_servers"]
        code, out, _ = kctl("consume", "r-untouched", "-b", server, "--from", "start", "-e")
        assert (code, out != "") == (0, True)
        sent = subprocess.run(
            [sys.executable, "-m", "kctl", "produce", "r-untouched", "-b", server],
            input=b"more",
            capture_output=True,
            check=False,
        )
        assert sent.returncode == (0 if is_writable else 1)
        assert (b"POLICY_VIOLATION" in sent.stderr) == (not is_writable)
        if is_writable:
            _replay(source, server)
        code, _, err = kctl("topics", "delete", "r-txn-untouched", "-b", server, "-y")
        assert code == 0, err
    finally:
        assert kctl("cluster", "destroy", "--data", data, "-y")[0] == 0
    assert not data.exists()
    assert before == digests(source)


def _replay(source: Path, server: str) -> None:
    """Replay logs into the cluster, and hold what arrives to what was sent."""
    to = ("--to", "again", "-b", server)
    assert kctl("topics", "create", "again", "-p", "1", "-b", server)[0] == 0
    bounds = ("--from", "3", "--until", "9")
    assert kctl("replay", source, "--topic", "r-untouched", *to, *bounds, "--speed", "max")[0] == 0
    code, out, _ = kctl("consume", "again", "-b", server, "--from", "start", "-e", "-o", "ndjson")
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    origins = [
        {header["key"]: header["value"] for header in row["headers"]}["replay.offset"]
        for row in rows
    ]
    assert origins == [str(offset) for offset in range(3, 9)]
    times = [row["timestamp"] for row in rows]
    # So slow that the records are at least so far apart.
    speed = max(times[-1] - times[0], 1) / 500
    began = time.monotonic()
    code, _, err = kctl("replay", source / "r-untouched-0", *to, *bounds, "--speed", f"{speed}x")
    assert code == 0
    assert err == "6 records, up to offsets 0: 8\n"
    assert time.monotonic() - began >= 0.5
    code, _, err = kctl("replay", source, "--topic", "r-untouched", *to, "--partition", "1")
    assert code == 2
    assert "again has 1 partitions" in err
    assert kctl("replay", source, *to)[0] == 2
    assert kctl("replay", source / "r-untouched-0", *to, "--speed", "fast")[0] == 2
    assert kctl("replay", source / "r-untouched-0", *to, "--from", "start")[0] == 2
