"""`kctl cluster`: a cluster on this machine, for rehearsals and for work without one.

A plain `start` is read here, without importing Typer: that is a fifth of the time until clients can
connect. All else, with every error, is left to `cluster_app.py`, and a test holds the two to the
same meaning.
"""

from __future__ import annotations

from typing import Any

#: Options of `start` that may be repeated, and what they are called.
_LISTS = {"--set": "settings", "--unset": "unset"}
#: Those with a text, and what they are called.
_TEXTS = {"--data": "data", "-o": "output", "--output": "output"}
#: Those with a whole number, and the least and the largest one.
_NUMBERS = {"--brokers": (1, 1 << 31), "--port": (0, 65535)}
TIMEOUT_S = 300.0


def read_start(words: list[str]) -> dict[str, Any] | None:
    """Return what a plain `start` asks for, None if a word of it is not plainly known."""
    asked: dict[str, Any] = {
        "settings": [],
        "unset": [],
        "foreground": False,
        "timeout_s": TIMEOUT_S,
    }
    asked.update(data=None, brokers=None, port=None, output="table")
    left = iter(words)
    for word in left:
        if word == "--foreground":
            asked["foreground"] = True
            continue
        value = next(left, "-")
        if value.startswith("-"):
            return None
        if word in _LISTS:
            asked[_LISTS[word]].append(value)
        elif word in _TEXTS:
            asked[_TEXTS[word]] = value
        elif word in _NUMBERS and value.isascii() and value.isdecimal():
            least, largest = _NUMBERS[word]
            if not least <= int(value) <= largest:
                return None
            asked[word[2:]] = int(value)
        else:
            return None
    return asked


def run(args: list[str]) -> int:
    """Run one of the noun's commands; returns the exit code."""
    asked = read_start(args[1:]) if args[:1] == ["start"] else None
    if asked is None:
        from kctl.__main__ import run_typer
        from kctl.commands.cluster_app import app

        return run_typer(app, "kctl cluster", args)
    from kctl.commands.cluster_work import StartRequest, start_cluster

    return start_cluster(StartRequest(**asked))


def __getattr__(name: str) -> Any:
    """Return the Typer application when somebody asks for it."""
    if name == "app":
        from kctl.commands.cluster_app import app

        return app
    raise AttributeError(name)
