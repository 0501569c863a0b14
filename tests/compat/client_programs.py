"""The commands that run members of the clients, built where a language is at hand."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.compat.groups.cells import Cell

_HERE: Final = Path(__file__).parent
_MEMBER_JAVA: Final = ("java", "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_GO_PROGRAMS: Final = {"franz-go": "franz", "sarama": "sarama"}


class ClientMissing(Exception):
    """A client cannot be run here."""


class Programs:
    """Members' programs; what is built for them lies in a folder."""

    def __init__(self, folder: Path, libs: str | None, newer_libs: str | None) -> None:
        """`libs` and `newer_libs` are folders of Kafka's jars, for Java's clients."""
        self._folder = folder
        self._libs = {"java": libs, "java-newer": newer_libs}
        self._built: dict[str, list[str]] = {}

    def command(self, cell: Cell, bootstrap: str, group: str, name: str) -> list[str]:
        """Return the command of a member; its topic has the name of its group.

        Raises ClientMissing, and CalledProcessError where a program is not built.
        """
        program = self._built.get(cell.client)
        if program is None:
            program = self._built[cell.client] = self._build(cell.client)
        instance = [f"{group}-{name}"] if cell.is_static else []
        return [*program, bootstrap, group, group, cell.assignor, name, *instance]

    def _build(self, client: str) -> list[str]:
        if client in self._libs:
            return self._build_java(client)
        if client in _GO_PROGRAMS:
            return self._build_go(_GO_PROGRAMS[client])
        if client == "kafkajs":
            return self._build_js()
        return [sys.executable, "-m", "tests.compat.groups.member", client]

    def _build_java(self, client: str) -> list[str]:
        libs = self._libs[client]
        if libs is None:
            raise ClientMissing(f"{client} needs a folder of Kafka's jars (--libs, --newer-libs)")
        classes = self._folder / client
        source = str(_HERE / "Member.java")
        subprocess.run(["javac", "-cp", f"{libs}/*", "-d", str(classes), source], check=True)
        return [*_MEMBER_JAVA, "-cp", f"{libs}/*:{classes}", "Member"]

    def _build_go(self, name: str) -> list[str]:
        _need("go")
        program = self._folder / f"member-{name}"
        command = ["go", "build", "-o", str(program), "."]
        subprocess.run(command, cwd=_HERE / "member_go" / name, check=True)
        return [str(program)]

    def _build_js(self) -> list[str]:
        _need("npm")
        script = shutil.copytree(_HERE / "member_js", self._folder / "member_js")
        subprocess.run(["npm", "install", "--silent"], cwd=script, check=True)
        return ["node", str(script / "member.js")]


def _need(program: str) -> None:
    if shutil.which(program) is None:
        raise ClientMissing(f"there is no {program} here")
