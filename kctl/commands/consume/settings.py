"""The client settings of `-X` that a consumer honours."""

from __future__ import annotations

from collections.abc import Mapping

from engine.client.fetching import FetchOptions
from kctl.arguments import UnreadableArgument
from kctl.numbers import INT32_MAX, whole_number

_ISOLATION = {"read_committed": True, "read_uncommitted": False}

#: The client settings that a consumer honours, besides those of every client.
CONSUMER_KEYS = (
    "fetch.max.bytes",
    "fetch.max.wait.ms",
    "isolation.level",
    "max.partition.fetch.bytes",
)


def fetch_options(settings: Mapping[str, str], *, read_committed: bool | None) -> FetchOptions:
    """Return how to fetch: an option goes before its setting. Errors: UnreadableArgument."""
    level = settings.get("isolation.level", "read_uncommitted")
    if level not in _ISOLATION:
        raise UnreadableArgument("a value of isolation.level", level, ", ".join(_ISOLATION))
    defaults = FetchOptions()
    return FetchOptions(
        read_committed=_ISOLATION[level] if read_committed is None else read_committed,
        max_wait_ms=_number(settings, "fetch.max.wait.ms", defaults.max_wait_ms),
        max_bytes=_number(settings, "fetch.max.bytes", defaults.max_bytes),
        partition_max_bytes=_number(
            settings, "max.partition.fetch.bytes", defaults.partition_max_bytes
        ),
    )


def _number(settings: Mapping[str, str], key: str, default: int) -> int:
    text = settings.get(key)
    if text is None:
        return default
    return whole_number(text, f"a value of {key}", 1, INT32_MAX)
