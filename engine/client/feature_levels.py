"""Levels of features by name: metadata versions, and the features that depend on them.

Source: MetadataVersion, Feature of 3.9.1 and 4.3.0 (names and levels are facts).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

METADATA: Final = "metadata.version"

#: The number of metadata levels that each release added.
_COUNTS: Final = {
    "3.3": 4,
    "3.4": 1,
    "3.5": 3,
    "3.6": 3,
    "3.7": 5,
    "3.8": 1,
    "3.9": 1,
    "4.0": 4,
    "4.1": 2,
    "4.2": 2,
    "4.3": 1,
    "4.4": 1,
}
_FIRST_LEVEL: Final = 4
#: Names in the order of their levels.
METADATA_NAMES: Final = tuple(
    f"{name}-IV{number}" for name, count in _COUNTS.items() for number in range(count)
)
#: Levels by name.
METADATA_LEVELS: Final[Mapping[str, int]] = {
    name: level for level, name in enumerate(METADATA_NAMES, _FIRST_LEVEL)
}
#: The latest stable level (for production), as of 4.3.0.
STABLE_METADATA_LEVEL: Final = 30


class KnownFeature(NamedTuple):
    """A feature: its levels, its default level by metadata level, and its dependencies.

    `requirements` are the lowest metadata levels for its levels that have one.
    """

    name: str
    levels: range
    defaults: tuple[tuple[int, int], ...]
    requirements: Mapping[int, int]

    def default_level(self, metadata_level: int) -> int:
        """Return the feature's default level at a level of metadata.version."""
        return max(
            (default for since, default in self.defaults if metadata_level >= since), default=0
        )


FEATURES: Final = (
    KnownFeature("kraft.version", range(2), ((21, 1),), {}),
    KnownFeature("transaction.version", range(3), ((24, 2),), {}),
    KnownFeature("group.version", range(2), ((22, 1),), {}),
    KnownFeature("eligible.leader.replicas.version", range(2), ((26, 1),), {1: 23}),
    KnownFeature("share.version", range(2), ((28, 1),), {}),
    KnownFeature("streams.version", range(2), ((29, 1),), {}),
)


def metadata_name(level: int) -> str | None:
    """Return the name of a level of metadata.version, like 3.9-IV0; None for an unknown level."""
    index = level - _FIRST_LEVEL
    return METADATA_NAMES[index] if 0 <= index < len(METADATA_NAMES) else None


def metadata_level(text: str, levels: range, stable_level: int) -> int | None:
    """Return the level of metadata.version for a text like 3.3-IV3, or for a release like 3.3.

    A release means its last level, up to `stable_level`. Only levels in `levels` count. None if no
    level has that name.
    """
    exact = METADATA_LEVELS.get(text)
    if exact is not None and exact in levels:
        return exact
    release = ".".join(text.split(".")[:2])
    if not text or text.count(".") > 2:
        return None
    of_release = [
        level
        for name, level in METADATA_LEVELS.items()
        if name.partition("-")[0] == release and level in levels and level <= stable_level
    ]
    return of_release[-1] if of_release else None


def levels_of_release(level: int) -> dict[str, int]:
    """Return the default levels of all features for a metadata level, metadata.version first."""
    return {METADATA: level} | {feature.name: feature.default_level(level) for feature in FEATURES}


def level_text(feature: str, level: int) -> str:
    """Return the text of a feature's level: the number; for metadata.version also its name."""
    name = metadata_name(level) if feature == METADATA else None
    return f"{level} ({name})" if name else str(level)
