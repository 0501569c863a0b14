"""Features of a cluster: finalized levels, levels that all brokers support, and deviating brokers.

A level can be finalized if each broker supports it. The current finalized levels are those with the
highest epoch: a broker that returns other levels has not applied the latest metadata yet. Different
epochs alone prove nothing: from 4.0 on they are offsets of the metadata log, which grows twice a
second.

Source: KIP-584; QuorumFeatures.reasonNotSupported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

from engine.client.connection import VersionRange
from engine.client.feature_admin import FeatureChange, FeaturesView, FeatureUpdate
from engine.client.feature_levels import level_text
from engine.errors import EngineError

_UNSUPPORTED: Final = VersionRange(0, 0)


class NoFeatures(EngineError):
    """The cluster has no features: its metadata is in ZooKeeper."""

    hint = (
        "the release of its brokers decides there, and the setting inter.broker.protocol.version: "
        "`kctl configs describe --broker ID --all inter.broker.protocol.version`"
    )

    def __init__(self) -> None:
        super().__init__("the cluster has no features: its metadata is in ZooKeeper")


class FeatureNotThere(EngineError):
    """A feature was named that no broker knows."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(f"no broker knows a feature {name}")
        self.hint = f"known are {', '.join(known)}"
        self.name = name
        self.known = known


class LevelRefused(EngineError):
    """The brokers would refuse a level, or it is the current one."""

    def __init__(self, name: str, level: int, reason: str) -> None:
        super().__init__(f"{name}={level_text(name, level)}: {reason}")
        self.name = name
        self.level = level


class ClusterFeature(NamedTuple):
    """A feature: its finalized level (0: none), and the levels that all brokers support.

    `supported` is None if the brokers have no level in common. `different` are the ranges of the
    brokers whose range differs from that of most.
    """

    name: str
    level: int
    supported: VersionRange | None
    different: Mapping[int, VersionRange]

    @property
    def may_rise(self) -> bool:
        """True if all brokers support a level of the feature that is higher than its level now."""
        return self.supported is not None and self.supported.highest > self.level


class ClusterFeatures(NamedTuple):
    """Features by name, the epoch of the finalized levels, and brokers with outdated levels.

    `behind` has, by broker id, the finalized levels that differ from the latest. `epoch` is None
    without features.
    """

    by_name: dict[str, ClusterFeature]
    epoch: int | None
    behind: Mapping[int, Mapping[str, int]]


def cluster_features(views: Mapping[int, FeaturesView]) -> ClusterFeatures:
    """Merge the features in the responses of all brokers of a cluster.

    The levels are those of the response with the highest epoch; brokers with other levels have not
    applied the last change yet, and are listed as behind.
    """
    latest = max(views.values(), key=lambda view: view.epoch or 0, default=FeaturesView({}, {}, 0))
    names = sorted({*latest.finalized, *(name for v in views.values() for name in v.supported)})
    behind = {
        id_: dict(sorted(view.finalized.items() - latest.finalized.items()))
        for id_, view in sorted(views.items())
        if view.finalized != latest.finalized
    }
    features = {name: _common_feature(name, views, latest.finalized.get(name, 0)) for name in names}
    return ClusterFeatures(features, latest.epoch if names else None, behind)


def _common_feature(name: str, views: Mapping[int, FeaturesView], level: int) -> ClusterFeature:
    """Return a feature with the range of levels that all brokers support.

    The range is None if the ranges of some brokers do not overlap. Brokers whose range is not the
    most frequent one are listed with it.
    """
    ranges = {id_: view.supported.get(name, _UNSUPPORTED) for id_, view in sorted(views.items())}
    lowest = max(one.lowest for one in ranges.values())
    highest = min(one.highest for one in ranges.values())
    ((most, _),) = Counter(ranges.values()).most_common(1)
    return ClusterFeature(
        name,
        level,
        VersionRange(lowest, highest) if lowest <= highest else None,
        {id_: one for id_, one in ranges.items() if one != most},
    )


def checked_feature_update(
    features: ClusterFeatures, name: str, level: int, change: FeatureChange
) -> FeatureUpdate:
    """Return the update of a feature to a new level; raise if the brokers would refuse it.

    The checks explain refusals better than the brokers, which decide finally. Raises NoFeatures,
    FeatureNotThere, LevelRefused.
    """
    if not features.by_name:
        raise NoFeatures
    feature = features.by_name.get(name)
    if feature is None:
        raise FeatureNotThere(name, tuple(features.by_name))
    if level == feature.level:
        raise LevelRefused(name, level, "that is its level now")
    is_upgrade = change is FeatureChange.UPGRADE
    if (level > feature.level) is not is_upgrade:
        other = "a downgrade" if is_upgrade else "an upgrade"
        now = level_text(name, feature.level)
        raise LevelRefused(name, level, f"its level now is {now}: that is {other}")
    if level != 0 and not _is_supported(feature, level):
        raise LevelRefused(name, level, _unsupported_text(feature, level))
    return FeatureUpdate(name, level, change)


def _is_supported(feature: ClusterFeature, level: int) -> bool:
    """True if all brokers of the cluster support a level of a feature."""
    supported = feature.supported
    return supported is not None and supported.lowest <= level <= supported.highest


def _unsupported_text(feature: ClusterFeature, level: int) -> str:
    """Return as text which brokers do not support this level of a feature, with their ranges."""
    preventing = [
        f"broker {id_} supports {range_text(one)}"
        for id_, one in feature.different.items()
        if not one.lowest <= level <= one.highest
    ]
    if preventing:
        return ", ".join(preventing)
    return f"the brokers support {range_text(feature.supported)}"


def range_text(levels: VersionRange | None) -> str:
    """Return a range of levels as text; None is "none in common"."""
    return "none in common" if levels is None else f"{levels.lowest} to {levels.highest}"
