"""Metadata versions and the features that go with them.

Source: MetadataVersion, Feature of 3.9.1 and 4.3.0 (names and levels are facts).
"""

from __future__ import annotations

from typing import Final, NamedTuple, NoReturn

from kctl.compat.java_failures import TerseFailure
from kctl.compat.releases import Release

METADATA: Final = "metadata.version"

#: How many levels of metadata each release has brought.
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
_NAMES: Final = [f"{name}-IV{number}" for name, n in _COUNTS.items() for number in range(n)]
_LEVELS: Final = {name: level for level, name in enumerate(_NAMES, _FIRST_LEVEL)}
#: The levels that a release knows, and its latest stable one.
_KNOWN: Final = {Release.V3_9: range(4, 22), Release.V4_3: range(7, 32)}
_LATEST: Final = {Release.V3_9: 20, Release.V4_3: 30}


class _Feature(NamedTuple):
    """A feature: from which metadata version on it has which default, and what it requires."""

    name: str
    levels: range
    defaults: tuple[tuple[int, int], ...]
    requirements: dict[int, int]


_FEATURES: Final = (
    _Feature("kraft.version", range(2), ((21, 1),), {}),
    _Feature("transaction.version", range(3), ((24, 2),), {}),
    _Feature("group.version", range(2), ((22, 1),), {}),
    _Feature("eligible.leader.replicas.version", range(2), ((26, 1),), {1: 23}),
    _Feature("share.version", range(2), ((28, 1),), {}),
    _Feature("streams.version", range(2), ((29, 1),), {}),
)


def level_named(text: str, release: Release) -> int:
    """Return the level of a name as 3.3-IV3, or of a release as 3.3; raises TerseFailure."""
    known = _KNOWN[release]
    exact = _LEVELS.get(text)
    if exact is not None and exact in known:
        return exact
    of_release = [
        level
        for name, level in _LEVELS.items()
        if text
        and text.count(".") <= 2
        and name.partition("-")[0] == _short(text)
        and level in known
        and level <= _stable(release)
    ]
    if not of_release:
        _refuse(text, release)
    return of_release[-1]


def _short(text: str) -> str:
    """Return the first two numbers of a release."""
    return ".".join(text.split(".")[:2])


def _stable(release: Release) -> int:
    return _KNOWN[release][-1] if release is Release.V3_9 else _LATEST[release]


def _refuse(text: str, release: Release) -> NoReturn:
    supported = ", ".join(name for name in _NAMES if _LEVELS[name] in _KNOWN[release])
    if release.is_four:
        raise TerseFailure(
            f"Unknown metadata.version '{text}'. Supported metadata.version are: {supported}"
        )
    raise TerseFailure(
        f"Unsupported metadata.version {text}. Supported metadata.version are {supported}"
    )


def level_name(level: int) -> str | None:
    """Return the name of a level of metadata, None for one that is not known."""
    index = level - _FIRST_LEVEL
    return _NAMES[index] if 0 <= index < len(_NAMES) else None


def mapping_lines(text: str | None) -> list[str]:
    """Return the features that go with a metadata version; raises TerseFailure. Source: 4.3.0."""
    level = _LATEST[Release.V4_3] if text is None else level_named(text, Release.V4_3)
    named = level_name(level) if text is None else text
    lines = [f"{METADATA}={level} ({named})"]
    for feature in _FEATURES:
        reached = [default for since, default in feature.defaults if level >= since]
        lines.append(f"{feature.name}={max(reached, default=0)}")
    return lines


def dependency_lines(name: str, level: int) -> list[str]:
    """Return what a level of a feature requires; raises TerseFailure. Source: 4.3.0."""
    if name == METADATA:
        if level not in _KNOWN[Release.V4_3]:
            raise TerseFailure(f"Unknown metadata.version {level}")
        return [f"{name}={level} ({level_name(level)}) has no dependencies."]
    feature = next((feature for feature in _FEATURES if feature.name == name), None)
    if feature is None:
        raise TerseFailure(f"Unknown feature: {name}")
    if level not in feature.levels:
        raise TerseFailure(f"No feature:{name} with feature level {level}")
    required = feature.requirements.get(level)
    if required is None:
        return [f"{name}={level} has no dependencies."]
    return [
        f"{name}={level} requires:",
        f"    {METADATA}={required} ({level_name(required)})",
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
