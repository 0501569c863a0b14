"""Levels of features as Kafka's tools read and print them, for each of their releases.

Source: FeatureCommand of 3.9.1 and 4.3.0.
"""

from __future__ import annotations

from typing import Final, NoReturn

from engine.client.feature_levels import (
    FEATURES,
    METADATA,
    METADATA_LEVELS,
    METADATA_NAMES,
    STABLE_METADATA_LEVEL,
    levels_of_release,
    metadata_level,
    metadata_name,
)
from kctl.compat.java_failures import TerseFailure
from kctl.compat.releases import Release

#: The levels that a release knows, and its latest stable one.
_KNOWN: Final = {Release.V3_9: range(4, 22), Release.V4_3: range(7, 32)}
_STABLE: Final = {Release.V3_9: 21, Release.V4_3: STABLE_METADATA_LEVEL}


def level_named(text: str, release: Release) -> int:
    """Return the level of a name as 3.3-IV3, or of a release as 3.3; raises TerseFailure."""
    level = metadata_level(text, _KNOWN[release], _STABLE[release])
    if level is None:
        _refuse(text, release)
    return level


def _refuse(text: str, release: Release) -> NoReturn:
    supported = ", ".join(
        name for name in METADATA_NAMES if METADATA_LEVELS[name] in _KNOWN[release]
    )
    if release.is_four:
        raise TerseFailure(
            f"Unknown metadata.version '{text}'. Supported metadata.version are: {supported}"
        )
    raise TerseFailure(
        f"Unsupported metadata.version {text}. Supported metadata.version are {supported}"
    )


def mapping_lines(text: str | None) -> list[str]:
    """Return the features that go with a metadata version; raises TerseFailure. Source: 4.3.0."""
    level = _STABLE[Release.V4_3] if text is None else level_named(text, Release.V4_3)
    levels = levels_of_release(level)
    named = metadata_name(level) if text is None else text
    lines = [f"{METADATA}={levels.pop(METADATA)} ({named})"]
    return lines + [f"{name}={default}" for name, default in levels.items()]


def dependency_lines(name: str, level: int) -> list[str]:
    """Return what a level of a feature requires; raises TerseFailure. Source: 4.3.0."""
    if name == METADATA:
        if level not in _KNOWN[Release.V4_3]:
            raise TerseFailure(f"Unknown metadata.version {level}")
        return [f"{name}={level} ({metadata_name(level)}) has no dependencies."]
    feature = next((feature for feature in FEATURES if feature.name == name), None)
    if feature is None:
        raise TerseFailure(f"Unknown feature: {name}")
    if level not in feature.levels:
        raise TerseFailure(f"No feature:{name} with feature level {level}")
    required = feature.requirements.get(level)
    if required is None:
        return [f"{name}={level} has no dependencies."]
    return [
        f"{name}={level} requires:",
        f"    {METADATA}={required} ({metadata_name(required)})",
    ]


def feature_level(text: str) -> tuple[str, int]:
    """Return name and level of `feature=level`; raises TerseFailure."""
    name, equals, number = text.partition("=")
    if not equals:
        raise TerseFailure(f"Can't parse feature=level string {text}: equals sign not found.")
    from kctl.compat.java_numbers import is_java_number

    if not is_java_number(number.strip(), 16):
        raise TerseFailure(
            f"Can't parse feature=level string {text}: unable to parse {number.strip()} as a short."
        )
    return name.strip(), int(number)
