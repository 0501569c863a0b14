"""The commands that run a program of outsiders' clients, built where a language is at hand."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

_JAVA: Final = ("java", "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_GO_PROGRAMS: Final = {"franz-go": "franz", "sarama": "sarama"}


class ClientMissing(Exception):
    """A client cannot be run here."""


class ClientPrograms:
    """One program, written for each client; what is built of it lies in a folder.

    Its sources are a package of tests: `NAME.py` for Python's clients, `Name.java`,
    `NAME_go/CLIENT` and `NAME_js/NAME.js`.
    """

    def __init__(
        self, sources: Path, name: str, folder: Path, libs: str | None, newer_libs: str | None
    ) -> None:
        """`libs` and `newer_libs` are folders of Kafka's jars, for Java's clients."""
        self._sources = sources
        self._name = name
        self._folder = folder
        self._libs = {"java": libs, "java-newer": newer_libs}
        self._built: dict[str, list[str]] = {}

    def command(self, client: str) -> list[str]:
        """Return the command of a client's program, to which its arguments are added.

        Raises ClientMissing, and CalledProcessError where a program is not built.
        """
        program = self._built.get(client)
        if program is None:
            program = self._built[client] = self._build(client)
        return program

    def _build(self, client: str) -> list[str]:
        if client in self._libs:
            return self._build_java(client)
        if client in _GO_PROGRAMS:
            return self._build_go(_GO_PROGRAMS[client])
        if client == "kafkajs":
            return self._build_js()
        module = f"tests.compat.{self._sources.name}.{self._name}"
        return [sys.executable, "-m", module, client]

    def _build_java(self, client: str) -> list[str]:
        libs = self._libs[client]
        if libs is None:
            raise ClientMissing(f"{client} needs a folder of Kafka's jars (--libs, --newer-libs)")
        classes = self._folder / client
        main_class = self._name.capitalize()
        source = str(self._sources / f"{main_class}.java")
        subprocess.run(["javac", "-cp", f"{libs}/*", "-d", str(classes), source], check=True)
        return [*_JAVA, "-cp", f"{libs}/*:{classes}", main_class]

    def _build_go(self, name: str) -> list[str]:
        _need("go")
        program = self._folder / f"{self._name}-{name}"
        command = ["go", "build", "-o", str(program), "."]
        subprocess.run(command, cwd=self._sources / f"{self._name}_go" / name, check=True)
        return [str(program)]

    def _build_js(self) -> list[str]:
        _need("npm")
        name = f"{self._name}_js"
        script = shutil.copytree(self._sources / name, self._folder / name)
        subprocess.run(["npm", "install", "--silent"], cwd=script, check=True)
        return ["node", str(script / f"{self._name}.js")]


def _need(program: str) -> None:
    if shutil.which(program) is None:
        raise ClientMissing(f"there is no {program} here")
