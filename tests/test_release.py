"""What `make release` decides before it builds anything."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools import release
from tools.trial_root import TrialRoot, why_not


def test_the_version_is_the_same_everywhere() -> None:
    release.check_version()


def test_a_version_without_a_heading_in_the_changelog_is_no_release(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(release, "ROOT", tmp_path)
    (tmp_path / "pyproject.toml").write_text(f'[project]\nversion = "{release.__version__}"\n')
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/changelog.md").write_text("## 0.0.9\n")
    with pytest.raises(release.ReleaseFailed, match="has no heading"):
        release.check_version()


@pytest.mark.parametrize(
    ("licence", "is_permissive"),
    [
        ("MIT License", True),
        ("BSD-3-Clause", True),
        ("Apache-2.0 OR BSD-3-Clause", True),
        ("Mozilla Public License 2.0 (MPL 2.0)", True),
        ("GNU General Public License v3 (GPLv3)", False),
        ("GNU Affero General Public License", False),
        ("LIMITED LICENCE", False),
        ("UNKNOWN", False),
    ],
)
def test_licences_that_are_not_permissive_are_recognized(licence: str, is_permissive: bool) -> None:
    assert is_permissive == bool(release.PERMISSIVE.search(licence))


def test_the_sums_are_of_every_file(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("two")
    (tmp_path / "a").write_text("one")
    release.write_sums(tmp_path)
    lines = (tmp_path / "SHA256SUMS").read_text().splitlines()
    assert [f"{hashlib.sha256(b'one').hexdigest()}  a", "b"] == [lines[0], lines[1].split()[1]]


def test_a_program_that_fails_ends_the_release() -> None:
    with pytest.raises(release.ReleaseFailed, match="no such"):
        release._run(["sh", "-c", "echo no such thing >&2; exit 3"])


@pytest.mark.skipif(why_not() is not None, reason="this machine gives no root of its own")
def test_a_trial_has_a_root_with_python_alone(tmp_path: Path) -> None:
    root = TrialRoot(tmp_path / "root", Path(sys.prefix))
    (root.home / "given").write_text("7")
    program = (
        "import json, os, shutil, ssl, sqlite3, sys\n"
        "open('/home/made', 'w').write(open('/home/given').read())\n"
        "programs = 'sh', 'cc', 'gcc', 'java'\n"
        "found = [name for name in programs if shutil.which(name, path='/bin:/usr/bin')]\n"
        "json.dump([sorted(os.listdir('/')), found, os.environ['PATH'], os.environ['HOME']], "
        "sys.stdout)"
    )
    command = root.command([sys.executable, "-c", program], "/trial/bin")
    environment = {"PATH": os.environ["PATH"], "HOME": "/home"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert "" == done.stderr
    names, found, path, home = json.loads(done.stdout)
    assert {"home", "tmp", "dev", "proc"} <= set(names)
    assert not {"bin", "etc", "sbin", "var"} & set(names)
    assert ([], "/trial/bin", "/home") == (found, path, home)
    assert "7" == (root.home / "made").read_text()
