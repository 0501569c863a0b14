"""Parse `key=value` arguments like Kafka's tools.

Source: CommandLineUtils.parseKeyValueArgs, maybeMergeOptions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kctl.compat.java_options import GivenOptions


def parse_pairs(texts: Iterable[str]) -> dict[str, str]:
    """Parse `key=value` texts; a text without `=` has the value "", the last of a key counts."""
    pairs: dict[str, str] = {}
    for text in texts:
        key, _, value = text.partition("=")
        pairs[key] = value
    return pairs


def merge_options(
    properties: Mapping[str, str], given: GivenOptions, options: Mapping[str, tuple[str, str]]
) -> dict[str, str]:
    """Return properties overridden by options.

    `options` has the property of each option and its default, which applies if neither is given.
    """
    found = dict(properties)
    for option, (key, default) in options.items():
        if given.has(option):
            found[key] = given.text(option) or ""
        else:
            found.setdefault(key, default)
    return found
