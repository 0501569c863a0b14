"""Parse and print levels of features as Kafka's tools of each release do.

Source: FeatureCommand of 3.9.1 and 4.3.0.
"""

from __future__ import annotations

from collections.abc import Mapping
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
from engine.errors import EngineError
from kctl.compat.java_admin import ILLEGAL_ARGUMENT
from kctl.compat.java_failures import TerseFailure, ToolFailure
from kctl.compat.releases import Release

#: metadata.version levels known to a release, and its latest stable level.
_KNOWN: Final = {Release.V3_9: range(4, 22), Release.V4_3: range(7, 32)}
_STABLE: Final = {Release.V3_9: 21, Release.V4_3: STABLE_METADATA_LEVEL}
_QUORUM: Final = "kraft.version"

#: Last metadata version of each release before KRaft.
_BEFORE_QUORUMS: Final = {
    "1.0": 0,
    "1.1": 0,
    "2.0": 1,
    "2.1": 2,
    "2.2": 1,
    "2.3": 1,
    "2.4": 1,
    "2.5": 0,
    "2.6": 0,
    "2.7": 2,
    "2.8": 1,
}
#: Releases of KRaft without a bootstrap snapshot of metadata.
_NO_BOOTSTRAP: Final = ("3.0", "3.1", "3.2")


def metadata_version_level(text: str, release: Release) -> int:
    """Return the metadata.version level of a name (3.3-IV3) or of a release (3.3).

    Errors: TerseFailure if the tools of `release` do not know it.
    """
    level = metadata_level(text, _KNOWN[release], _STABLE[release])
    if level is None:
        _refuse_metadata_version(text, release)
    return level


def _refuse_metadata_version(text: str, release: Release) -> NoReturn:
    """Raise TerseFailure for an unknown metadata.version, with the release's text."""
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
    """Return the default levels of features for a metadata.version, as lines of text.

    `text` None means the latest stable version. Errors: TerseFailure. Source: kafka-features
    version-mapping of 4.3.0.
    """
    level = _STABLE[Release.V4_3] if text is None else metadata_version_level(text, Release.V4_3)
    levels = levels_of_release(level)
    named = metadata_name(level) if text is None else text
    lines = [f"{METADATA}={levels.pop(METADATA)} ({named})"]
    return lines + [f"{name}={default}" for name, default in levels.items()]


def dependency_lines(name: str, level: int) -> list[str]:
    """Return the features that a feature's level requires, as lines of text.

    Errors: TerseFailure for an unknown feature or level. Source: kafka-features
    feature-dependencies of 4.3.0.
    """
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


def levels_to_format(
    release_text: str | None, wanted: Mapping[str, int], release: Release
) -> list[tuple[str, int]]:
    """Return the levels with which a cluster is formatted, metadata.version first, then by name.

    `release_text` is --release-version, None if it is not given; `wanted` are levels of --feature.
    Features at level 0 are left out, and kraft.version, which is stored elsewhere. Before 4.0 only
    metadata.version can be set. Errors: TerseFailure, ToolFailure. Source: Formatter.
    """
    metadata = _metadata_level_to_format(release_text, wanted, release)
    levels = {}
    features = FEATURES if release.is_four else ()
    known = sorted(feature.name for feature in features) or ["kraft.version", "transaction.version"]
    for name in wanted:
        if name != METADATA and name not in known:
            supported = ", ".join(known)
            raise TerseFailure(f"Unsupported feature: {name}. Supported features are: {supported}")
        if name == _QUORUM or (name != METADATA and not features):
            raise TerseFailure(f"a level of {name} is not served here: use Kafka's kafka-storage")
    for feature in features:
        level = wanted.get(feature.name, feature.default_level(metadata))
        if level not in feature.levels:
            message = f"No feature:{feature.name} with feature level {level}"
            raise ToolFailure(ILLEGAL_ARGUMENT, message)
        required = feature.requirements.get(level, 0)
        if metadata < required:
            raise ToolFailure(
                ILLEGAL_ARGUMENT,
                f"{feature.name} could not be set to {level} because it depends on {METADATA} "
                f"level {required}",
            )
        if level and feature.name != _QUORUM:
            levels[feature.name] = level
    return [(METADATA, metadata), *sorted(levels.items())]


def _metadata_level_to_format(
    release_text: str | None, wanted: Mapping[str, int], release: Release
) -> int:
    """Return the metadata.version level with which kafka-storage formats a cluster.

    `release_text` is --release-version, `wanted` are levels of --feature; without both it is the
    latest stable one. Errors: TerseFailure, ToolFailure.
    """
    known, stable = _KNOWN[release], _STABLE[release]
    if release_text is not None:
        if METADATA in wanted:
            raise TerseFailure(
                f"Use --release-version instead of --feature {METADATA}=X to avoid ambiguity."
            )
        try:
            level = metadata_version_level(release_text, release)
        except TerseFailure:
            level = stable + 1
        if level <= stable:
            return level
        if not release.is_four:
            raise _too_old_release(release_text)
        supported = ", ".join(
            name for name in METADATA_NAMES if known[0] <= METADATA_LEVELS[name] <= stable
        )
        raise TerseFailure(
            f"Unknown {METADATA} '{release_text}'. Supported {METADATA} are: {supported}"
        )
    level = wanted.get(METADATA, stable)
    if level not in known:
        raise ToolFailure(
            ILLEGAL_ARGUMENT,
            f"No MetadataVersion with feature level {level}. Valid feature levels are from "
            f"{known[0]} to {known[-1]}.",
        )
    if level > stable:
        raise TerseFailure(f"{METADATA} {level} is not stable, and not served here")
    return level


def _too_old_release(release_text: str) -> EngineError:
    """Return the error with which 3.9.1 refuses to format a cluster for an old release."""
    if release_text in _NO_BOOTSTRAP:
        return ToolFailure(
            "java.lang.RuntimeException",
            f"Bootstrap {METADATA} before 3.3-IV0 are not supported. Can't load metadata from "
            "format command",
        )
    last = _BEFORE_QUORUMS.get(release_text)
    if last is None:
        message = f"Version {release_text} is not a valid version"
        return ToolFailure(ILLEGAL_ARGUMENT, message)
    return TerseFailure(f"{METADATA} {release_text}-IV{last} is too old to be supported.")


def parse_feature_level(text: str) -> tuple[str, int]:
    """Parse `feature=level` into name and level; raises TerseFailure."""
    name, equals, number = text.partition("=")
    if not equals:
        raise TerseFailure(f"Can't parse feature=level string {text}: equals sign not found.")
    from kctl.compat.java_numbers import is_java_number

    if not is_java_number(number.strip(), 16):
        raise TerseFailure(
            f"Can't parse feature=level string {text}: unable to parse {number.strip()} as a short."
        )
    return name.strip(), int(number)
