"""`kctl features`: words as levels, what is sent, and what is printed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from engine.client.cluster_features import LevelRefused, NoFeatures
from engine.wire.structs import message_class
from kctl import exits
from kctl.arguments import UnreadableArgument
from kctl.commands.features import levels
from kctl.commands.features.levels import (
    LevelsRequest,
    change_levels,
    list_features,
    parse_wanted_levels,
)
from kctl.connect import ClusterOptions
from kctl.console import NoTerminal
from kctl.schemas import schema_of
from tests.unit.client.fake_broker import FakeCluster

FINALIZED = {"metadata.version": 25, "transaction.version": 1}


class Featured(FakeCluster):
    """Two brokers that support the same; `error` answers each change."""

    def __init__(self, finalized: dict[str, int] | None = None) -> None:
        super().__init__()
        self.finalized = FINALIZED if finalized is None else finalized
        self.error = 0
        self.updates: list[tuple[str, int, int, bool]] = []
        self.handlers["UpdateFeatures"] = self._update

    def api_versions(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        answer = super().api_versions(body, version, address)
        row = message_class("ApiVersionsResponse")
        answer.supported_features = [
            row.SupportedFeatureKey(name=name, min_version=0, max_version=top)
            for name, top in (("metadata.version", 30), ("transaction.version", 2))
            if self.finalized
        ]
        answer.finalized_features = [
            row.FinalizedFeatureKey(name=name, max_version_level=n, min_version_level=n)
            for name, n in self.finalized.items()
        ]
        answer.finalized_features_epoch = 40 + address[1] % 2 if self.finalized else 0
        return answer

    def _update(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        self.updates += [
            (it.feature, it.max_version_level, it.upgrade_type, body.validate_only)
            for it in body.feature_updates
        ]
        response = message_class("UpdateFeaturesResponse")
        return response(error_code=self.error, error_message="no" if self.error else None)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Featured:
    cluster = Featured()
    monkeypatch.setattr(levels, "connect", lambda options: cluster.client())
    return cluster


def request(words: Sequence[str] = (), **changes: Any) -> LevelsRequest:
    made = LevelsRequest(words, None, True, False, False, True, "json")
    return made._replace(**changes)


@pytest.mark.parametrize(
    ("words", "release", "expected"),
    [
        (["metadata.version=4.3"], None, {"metadata.version": 30}),
        (["metadata.version=4.2-IV1", "x=3"], None, {"metadata.version": 29, "x": 3}),
        (["metadata.version=31"], None, {"metadata.version": 31}),
        ([], "4.0", {"metadata.version": 25, "transaction.version": 2, "group.version": 1}),
    ],
)
def test_levels_are_numbers_names_or_a_release(
    words: list[str], release: str | None, expected: dict[str, int]
) -> None:
    assert expected.items() <= parse_wanted_levels(request(words, release=release)).items()


@pytest.mark.parametrize(
    ("words", "release"),
    [
        ([], None),
        (["x=1"], "4.0"),
        (["x"], None),
        (["=1"], None),
        (["x=1", "x=2"], None),
        (["x=-1"], None),
        (["x=99999"], None),
        (["metadata.version=1.0"], None),
        ([], "9.9"),
    ],
)
def test_other_words_are_refused(words: list[str], release: str | None) -> None:
    with pytest.raises(UnreadableArgument):
        parse_wanted_levels(request(words, release=release))


def test_features_are_rows(cluster: Featured, capsys: pytest.CaptureFixture[str]) -> None:
    assert exits.OK == list_features(ClusterOptions(), check=True, output="json")
    rows = json.loads(capsys.readouterr().out)
    Draft202012Validator(schema_of("features list")).validate(rows)
    assert ["4.0-IV3", None] == [row["level_name"] for row in rows]
    assert [True, True] == [row["may_rise"] for row in rows]


def test_a_cluster_without_features_says_why(
    cluster: Featured, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.finalized = {}
    assert exits.OK == list_features(ClusterOptions(), check=True, output="csv")
    assert "its metadata is in ZooKeeper" in capsys.readouterr().err
    with pytest.raises(NoFeatures):
        change_levels(ClusterOptions(), request(release="4.3"))
    assert [] == cluster.updates


@pytest.mark.parametrize(("dry_run", "result"), [(True, "would be upgraded"), (False, "upgraded")])
def test_a_release_raises_what_is_below_it(
    cluster: Featured, capsys: pytest.CaptureFixture[str], *, dry_run: bool, result: str
) -> None:
    assert exits.OK == change_levels(ClusterOptions(), request(release="4.3", dry_run=dry_run))
    assert [("metadata.version", 30, 1, dry_run), ("transaction.version", 2, 1, dry_run)] == (
        cluster.updates
    )
    rows = json.loads(capsys.readouterr().out)
    Draft202012Validator(schema_of("features upgrade")).validate(rows)
    assert [(25, 30, result), (1, 2, result)] == [
        (row["old_level"], row["new_level"], row["result"]) for row in rows
    ]


def test_nothing_is_sent_where_every_feature_has_its_level(
    cluster: Featured, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exits.OK == change_levels(ClusterOptions(), request(release="3.9"))
    assert [] == cluster.updates
    assert "or a higher one" in capsys.readouterr().err


@pytest.mark.parametrize(("unsafe", "kind"), [(False, 2), (True, 3)])
def test_a_downgrade_is_safe_unless_it_is_said(
    cluster: Featured, *, unsafe: bool, kind: int
) -> None:
    wanted = request(["metadata.version=3.9"], is_upgrade=False, unsafe=unsafe)
    assert exits.OK == change_levels(ClusterOptions(), wanted)
    assert [("metadata.version", 21, kind, False)] == cluster.updates


def test_a_refusal_of_the_controller_is_reported_for_each(
    cluster: Featured, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.error = 96
    assert exits.FAILED == change_levels(ClusterOptions(), request(release="4.3"))
    told = capsys.readouterr()
    assert "[]" == told.out.strip()
    assert "metadata.version=30: " in told.err
    assert "transaction.version=2: " in told.err


def test_nothing_is_sent_before_a_yes_or_with_a_level_that_cannot_be(cluster: Featured) -> None:
    with pytest.raises(NoTerminal, match=r"from 1 to 2"):
        change_levels(ClusterOptions(), request(["transaction.version=2"], yes=False))
    with pytest.raises(LevelRefused):
        change_levels(ClusterOptions(), request(["transaction.version=3"]))
    assert [] == cluster.updates
