"""A root of its own for the trial of a release: Python, the C library, and nothing else.

A mount namespace of an unprivileged user has an empty folder for its root, into which these are
bound: the environment with the wheel, the interpreter with its library, shared libraries, and
/dev/null, /dev/urandom and /proc. No shell, no compiler, no Java. The folder's /home and /tmp stay
from one command to the next, so that a cluster which one starts serves the others.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

_DEVICES = ("/dev/null", "/dev/urandom")
_OUTSIDE_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
_NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount")


class TrialRoot:
    """An empty folder as the root of commands."""

    def __init__(self, root: Path, environment: Path) -> None:
        """`environment` is a virtual environment of the interpreter that runs this."""
        self._root = root
        self._bound = [environment, *_python(), *_libraries()]
        for folder in ("home", "tmp"):
            (root / folder).mkdir(parents=True)

    @property
    def home(self) -> Path:
        """Return where /home of this root is outside of it."""
        return self._root / "home"

    def command(self, words: list[str], path: str) -> list[str]:
        """Return a command that runs another one in this root, with a PATH of its own.

        The rest of the environment, and the streams, are the caller's.
        """
        bound = [*self._bound, *map(Path, _DEVICES), Path("/proc")]
        mounts = [f"mount --rbind {shlex.quote(str(one))} {self._place(one)}" for one in bound]
        # The shell, mount and chroot are outside: the new root has none of them.
        change = shlex.join([_chroot(), str(self._root), *words])
        last = f"PATH={shlex.quote(path)} exec {change}"
        script = " && ".join((f"PATH={_OUTSIDE_PATH}", *mounts, last))
        return [*_NAMESPACE, "/bin/sh", "-c", script]

    def _place(self, path: Path) -> str:
        """Make the place of a path below the root, and return it quoted."""
        place = self._root / path.relative_to("/")
        if path.is_dir():
            place.mkdir(parents=True, exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch()
        return shlex.quote(str(place))


def why_not() -> str | None:
    """Return why this machine gives no root of its own, None if it does."""
    if shutil.which("unshare") is None or shutil.which("chroot", path=_OUTSIDE_PATH) is None:
        return "there is no unshare or chroot"
    tried = subprocess.run([*_NAMESPACE, "true"], capture_output=True, text=True, check=False)
    return (tried.stderr.strip() or "unshare fails") if tried.returncode else None


def _chroot() -> str:
    return shutil.which("chroot", path=_OUTSIDE_PATH) or "chroot"


def _python() -> list[Path]:
    """Return what the interpreter consists of: its prefix, or of the system's the parts."""
    prefix = Path(sys.base_prefix)
    if prefix != Path("/usr"):
        return [prefix]
    stdlib = Path(sysconfig.get_path("stdlib"))
    return [Path(sys._base_executable).resolve(), stdlib]  # type: ignore[attr-defined]


def _libraries() -> list[Path]:
    """Return the folders of shared libraries; compilers and Java are in others beside them."""
    multiarch = sysconfig.get_config_var("MULTIARCH") or ""
    folders = [Path("/lib64"), Path("/lib") / multiarch, Path("/usr/lib") / multiarch]
    if not multiarch:
        folders = [Path("/lib64"), Path("/usr/lib64")]
    return [folder for folder in folders if folder.is_dir()]
