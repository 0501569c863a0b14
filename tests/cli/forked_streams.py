"""Commands whose standard output is closed or full, as forks of one interpreter that has kctl.

    python -m tests.cli.forked_streams COMMAND ...

Prints how each ended, as JSON. A fork makes its streams of its descriptors as an interpreter does,
and ends as one: what an interpreter says of streams as it ends is a part of that.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module

import typer.main  # noqa: F401 -- what each command imports

from kctl.__main__ import entry
from kctl.app import NOUNS

#: A redirection of a shell, and what stdout then is.
REDIRECTIONS = {">&-": "", ">/dev/full": "/dev/full"}


def main(lines: list[str]) -> None:
    """Run the commands."""
    for noun in NOUNS.values():
        import_module(f"kctl.commands.{noun.module}.app")
    endings = {}
    for line in lines:
        for redirection, path in REDIRECTIONS.items():
            told, of_child = os.pipe()
            pid = os.fork()
            if pid == 0:
                _redirect(path, of_child)
                sys.argv[1:] = line.split()
                entry()
            os.close(of_child)
            with open(told) as said:
                err = said.read()
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            endings[f"{line} {redirection}"] = code, err
    sys.stdout.write(json.dumps(endings))


def _redirect(path: str, err: int) -> None:
    """Have the streams of this process be those of an interpreter with such descriptors."""
    os.dup2(err, 2)
    os.close(err)
    os.close(1)
    sys.stdout = sys.__stdout__ = None  # type: ignore[assignment, misc]
    if path:
        assert os.open(path, os.O_WRONLY) == 1
        stdout = open(1, "w", closefd=False)  # noqa: SIM115 -- the interpreter flushes it
        sys.stdout = sys.__stdout__ = stdout  # type: ignore[misc]


if __name__ == "__main__":
    main(sys.argv[1:])
