"""The releases of Kafka whose tools are followed, and their names in a call.

Source: the tools of 3.9.1 and 4.3.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from engine.errors import EngineError

_OPTION = "--kafka-version"


class Release(Enum):
    """A release whose options, standard output and exit codes are followed."""

    V3_9 = "3.9.1"
    V4_3 = "4.3.0"

    @property
    def is_four(self) -> bool:
        """Return whether the tools of 4.3.0 are followed."""
        return self is Release.V4_3


_SPELLINGS = {
    "3.9": Release.V3_9,
    "3.9.1": Release.V3_9,
    "4.3": Release.V4_3,
    "4.3.0": Release.V4_3,
}


class UnknownRelease(EngineError):
    """A call requests a release that kctl does not follow."""

    def __init__(self, text: str) -> None:
        super().__init__(f"{_OPTION} {text}: expected one of {', '.join(_SPELLINGS)}")
        self.text = text


def release_named(text: str) -> Release:
    """Return the release of a version; raises UnknownRelease."""
    if text not in _SPELLINGS:
        raise UnknownRelease(text)
    return _SPELLINGS[text]


def split_release(
    arguments: Sequence[str], default: Release = Release.V3_9
) -> tuple[Release, list[str]]:
    """Return the release of the arguments or the default, and the tool's own arguments.

    Raises UnknownRelease.
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
