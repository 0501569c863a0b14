"""`kctl cluster start --from-logs` with real processes: the source stays as it is."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
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
        code, _, err = kctl("topics", "delete", "r-txn-untouched", "-b", server, "-y")
        assert code == 0, err
    finally:
        assert kctl("cluster", "destroy", "--data", data, "-y")[0] == 0
    assert not data.exists()
    assert before == digests(source)
