"""Differences that docs/compatibility.md lists, by what makes them."""

from __future__ import annotations

from collections.abc import Sequence

from tests.compat.tools.masking import Answer


def accepted(tool: str, words: Sequence[str], want: Answer, have: Answer) -> str:
    """Return why a difference is none of ours to mend, nothing where it is."""
    if "--help" in words and want.status == have.status and want.stdout == have.stdout:
        return "help in our own words"
    return ""
