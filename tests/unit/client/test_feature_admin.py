"""Features of a cluster: what its brokers support together, and which changes of levels may be."""

from __future__ import annotations

from typing import Any

import pytest

from engine.client.cluster_features import (
    FeatureNotThere,
    LevelRefused,
    NoFeatures,
    checked_feature_update,
    cluster_features,
)
from engine.client.connection import VersionRange
from engine.client.errors import TimedOut, Unreachable
from engine.client.feature_admin import (
    FeatureChange,
    FeaturesView,
    FeatureUpdate,
    features_by_broker,
)
from engine.client.feature_levels import level_text, levels_of_release
from engine.wire.structs import message_class
from tests.unit.client.fake_broker import FakeCluster

UP, DOWN = FeatureChange.UPGRADE, FeatureChange.SAFE_DOWNGRADE


def view(
    supported: dict[str, tuple[int, int]], finalized: dict[str, int], epoch: int
) -> FeaturesView:
    return FeaturesView({n: VersionRange(*r) for n, r in supported.items()}, finalized, epoch)


ROLLING = cluster_features(
    {
        1: view(
            {"metadata.version": (7, 30), "group.version": (0, 1)}, {"metadata.version": 25}, 9
        ),
        2: view(
            {"metadata.version": (7, 30), "group.version": (0, 1)}, {"metadata.version": 25}, 8
        ),
        3: view({"metadata.version": (4, 25)}, {"metadata.version": 20}, 5),
    }
)


class FeaturedCluster(FakeCluster):
    """Two brokers, of which the second supports one level more; those in `silent` say nothing."""

    silent: set[int]

    def __init__(self) -> None:
        super().__init__()
        self.silent = set()

    def api_versions(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        broker_id = address[1] - 9000
        if broker_id in self.silent:
            return None
        answer = super().api_versions(body, version, address)
        row = message_class("ApiVersionsResponse")
        answer.supported_features = [
            row.SupportedFeatureKey(name="x", min_version=0, max_version=broker_id)
        ]
        answer.finalized_features = [
            row.FinalizedFeatureKey(name="x", max_version_level=1, min_version_level=1)
        ]
        answer.finalized_features_epoch = 7
        return answer


def test_every_broker_gets_a_request_for_its_own() -> None:
    cluster = FeaturedCluster()
    views, failures = features_by_broker(cluster.client())
    assert {} == failures
    assert {1: VersionRange(0, 1), 2: VersionRange(0, 2)} == {
        id_: one.supported["x"] for id_, one in views.items()
    }
    assert ({"x": 1}, 7) == views[2][1:]


def test_a_broker_that_does_not_answer_is_named() -> None:
    cluster = FeaturedCluster()
    cluster.silent.add(2)
    views, failures = features_by_broker(cluster.client())
    assert [1] == list(views)
    assert [2] == list(failures)
    assert isinstance(failures[2], Unreachable | TimedOut)


def test_levels_are_those_that_all_brokers_support() -> None:
    metadata, group = ROLLING.by_name["metadata.version"], ROLLING.by_name["group.version"]
    assert (25, VersionRange(7, 25), {3: VersionRange(4, 25)}) == metadata[1:]
    assert not metadata.may_rise
    assert (VersionRange(0, 0), {3: VersionRange(0, 0)}) == group[2:]
    assert 9 == ROLLING.epoch


def test_a_broker_with_other_levels_is_behind_and_one_with_another_epoch_is_not() -> None:
    assert {3: {"metadata.version": 20}} == ROLLING.behind


def test_brokers_without_a_level_in_common_support_none() -> None:
    apart = cluster_features({1: view({"x": (3, 4)}, {}, 1), 2: view({"x": (1, 2)}, {}, 1)})
    assert apart.by_name["x"].supported is None
    with pytest.raises(LevelRefused, match=r"the brokers support|broker"):
        checked_feature_update(apart, "x", 2, UP)


def test_a_change_is_one_of_a_level_that_all_support() -> None:
    assert FeatureUpdate("metadata.version", 24, DOWN) == checked_feature_update(
        ROLLING, "metadata.version", 24, DOWN
    )
    assert 0 == checked_feature_update(ROLLING, "metadata.version", 0, DOWN).level


@pytest.mark.parametrize(
    ("name", "level", "change", "reason"),
    [
        ("metadata.version", 30, UP, r"broker 3 supports 4 to 25"),
        ("metadata.version", 25, UP, "that is its level now"),
        ("metadata.version", 24, UP, r"its level now is 25 \(4.0-IV3\): that is a downgrade"),
        ("metadata.version", 26, DOWN, "that is an upgrade"),
        ("metadata.version", 5, DOWN, "the brokers support 7 to 25"),
        ("group.version", 1, UP, "broker 3 supports 0 to 0"),
    ],
)
def test_a_level_that_would_not_be_taken_is_refused_with_the_broker_that_prevents_it(
    name: str, level: int, change: FeatureChange, reason: str
) -> None:
    with pytest.raises(LevelRefused, match=reason):
        checked_feature_update(ROLLING, name, level, change)


def test_a_feature_that_no_broker_knows_is_named_with_those_that_they_do() -> None:
    with pytest.raises(FeatureNotThere) as caught:
        checked_feature_update(ROLLING, "nosuch", 1, UP)
    assert "group.version, metadata.version" in str(caught.value.hint)


def test_a_cluster_with_zookeeper_has_no_features() -> None:
    none = cluster_features({1: view({}, {}, 0)})
    assert (None, {}) == (none.epoch, none.behind)
    with pytest.raises(NoFeatures):
        checked_feature_update(none, "metadata.version", 1, UP)


def test_a_release_has_a_level_for_each_feature() -> None:
    levels = levels_of_release(25)
    assert ("metadata.version", 25) == next(iter(levels.items()))
    assert (2, 1, 0) == tuple(
        levels[name] for name in ("transaction.version", "group.version", "share.version")
    )
    assert "25 (4.0-IV3)" == level_text("metadata.version", 25)
    assert "25" == level_text("x", 25)
