"""Settings on the command line: KEY=VALUE."""

from __future__ import annotations

from collections.abc import Iterable

from kctl.words import UnreadableWord


def settings_of(words: Iterable[str]) -> dict[str, str]:
    """Return the settings that words say, the last one of a key; raises UnreadableWord."""
    settings = {}
    for word in words:
        key, separator, value = word.partition("=")
        if not separator or not key.strip():
            raise UnreadableWord("a setting", word, "KEY=VALUE, as in num.partitions=3")
        settings[key.strip()] = value.strip()
    return settings
