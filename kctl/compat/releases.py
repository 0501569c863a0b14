"""The releases of Kafka whose tools are imitated, and their names on the command line.

Source: the tools of 3.9.1 and 4.3.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from engine.errors import EngineError

_OPTION = "--kafka-version"


class Release(Enum):
    """A release whose options, standard output and exit codes are imitated."""

    V3_9 = "3.9.1"
    V4_3 = "4.3.0"

    @property
    def is_four(self) -> bool:
        """Return True for 4.3.0."""
        return self is Release.V4_3


_SPELLINGS = {
    "3.9": Release.V3_9,
    "3.9.1": Release.V3_9,
    "4.3": Release.V4_3,
    "4.3.0": Release.V4_3,
}


class UnknownRelease(EngineError):
    """--kafka-version names a release that kctl does not imitate."""

    def __init__(self, text: str) -> None:
        super().__init__(f"{_OPTION} {text}: expected one of {', '.join(_SPELLINGS)}")
        self.text = text


def release_named(text: str) -> Release:
    """Return the release of a version such as 3.9 or 4.3.0; raises UnknownRelease."""
    if text not in _SPELLINGS:
        raise UnknownRelease(text)
    return _SPELLINGS[text]


def split_release(
    arguments: Sequence[str], default: Release = Release.V3_9
) -> tuple[Release, list[str]]:
    """Return the release of --kafka-version, or `default`, and the other arguments.

    Errors: UnknownRelease.
    """
    release, left = default, []
    rest = list(reversed(arguments))
    while rest:
        argument = rest.pop()
        name, is_joined, joined = argument.partition("=")
        if name != _OPTION:
            left.append(argument)
            continue
        release = release_named(joined if is_joined else (rest.pop() if rest else ""))
    return release, left
