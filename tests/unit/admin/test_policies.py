"""The operator's policies are asked last, and what they forbid is said in their words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.admin.policies import (
    AlterConfigRequest,
    CreateTopicRequest,
    load_policies,
)
from engine.admin.topic_rules import CreatableTopic
from engine.errors import ConfigError
from tests.unit.admin.policy_classes import ByName
from tests.unit.api.configuring import BROKER, DELETE, SET, TOPIC, Stage
from tests.unit.controller.admin import AdminBench

HERE = "tests.unit.admin.policy_classes"


@pytest.fixture(autouse=True)
def _nothing_asked() -> Iterator[None]:
    ByName.asked.clear()
    ByName.events.clear()
    yield


def bench() -> AdminBench:
    policies = load_policies(f"{HERE}:ByName", None, {"broker.id": "1"})
    return AdminBench(2, policy=policies.create_topic)


def created(bench: AdminBench, *topics: CreatableTopic, **options: Any) -> Any:
    results = bench.outcomes(bench.admin.create_topics, *topics, timeout_ms=1000, **options)
    return {name: (result.code, result.message) for name, result in results.items()}


def test_a_topic_is_refused_in_the_words_of_the_policy_and_others_are_created() -> None:
    topics = [CreatableTopic(name, 1, 1) for name in ("bad", "broken", "wrong", "ok")]
    expected = {
        "bad": (44, "no bad"),
        "broken": (-1, None),
        "wrong": (40, "wrong words"),
        "ok": (0, None),
    }
    assert expected == created(bench(), *topics)


def test_a_policy_checks_validations_too_and_after_all_other_checks() -> None:
    made = bench()
    assert {"bad": (44, "no bad")} == created(made, CreatableTopic("bad", 1, 1), validate_only=True)
    ByName.asked.clear()
    wrong = CreatableTopic("bad", 1, 1, configs=[("nosuch", "1")])
    assert {"bad": (40, "Unknown topic config name: nosuch")} == created(made, wrong)
    assert [] == ByName.asked


def test_a_policy_has_the_counts_that_a_topic_gets_or_its_assignment() -> None:
    made = bench()
    created(made, CreatableTopic("counted", configs=[("retention.ms", "5")]))
    created(made, CreatableTopic("placed", assignments=[(1, (1,)), (0, (2,))]))
    expected = [
        CreateTopicRequest("counted", 1, 1, None, {"retention.ms": "5"}),
        CreateTopicRequest("placed", None, None, {1: (1,), 0: (2,)}, {}),
    ]
    assert expected == ByName.asked


def test_automatic_creation_is_refused_too() -> None:
    made = bench()
    codes = made.outcomes(made.auto.auto_create, "bad", "broken", "ok")
    assert {"bad": 44, "broken": -1, "ok": 5} == codes


def altering() -> Stage:
    policies = load_policies(None, f"{HERE}:ByName", {"broker.id": "1"})
    return Stage(policy=policies.alter_config)


@pytest.mark.parametrize("validate_only", [False, True])
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("13", (44, "no 13")),
        ("14", (-1, None)),
        ("16", (0, None)),
    ],
)
def test_settings_are_refused_in_the_words_of_the_policy(
    value: str, expected: Any, validate_only: bool
) -> None:
    stage = altering()
    change = {"retention.ms": value}
    assert expected == stage.replace(TOPIC, "clicks", change, validate_only=validate_only)
    operation = (SET, "retention.ms", value)
    assert expected == stage.operate(TOPIC, "clicks", operation, validate_only=validate_only)
    assert (expected[0] == 0 and not validate_only) == stage.is_stored("topics/clicks")


def test_a_policy_has_what_the_request_names() -> None:
    stage = altering()
    stage.put("topics/clicks", {"cleanup.policy": "compact"})
    stage.operate(TOPIC, "clicks", (SET, "retention.ms", "1"), (DELETE, "cleanup.policy", None))
    stage.operate(BROKER, "1", (SET, "log.cleaner.threads", "2"))
    stage.replace(BROKER, "", {"log.cleaner.threads": "2"})
    stage.operate(TOPIC, "clicks", (SET, "nosuch", "1"))
    expected = [
        AlterConfigRequest("TOPIC", "clicks", {"retention.ms": "1", "cleanup.policy": None}),
        AlterConfigRequest("BROKER", "1", {"log.cleaner.threads": "2"}),
        AlterConfigRequest("BROKER", "", {"log.cleaner.threads": "2"}),
    ]
    assert expected == ByName.asked


def test_a_policy_is_configured_at_the_start_and_closed_at_the_end() -> None:
    load_policies(f"{HERE}:ByName", f"{HERE}:ByName", {"broker.id": "3"}).close()
    assert [*["configured by broker 3"] * 2, *["closed"] * 2] == ByName.events


def test_a_policy_may_be_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "class P:\n    def validate(self, request):\n        raise ValueError(request)\n"
    )
    policies = load_policies(f"{path}:P", " ", {})
    assert policies.create_topic is not None
    assert policies.alter_config is None
    policies.close()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("com.example.MyPolicy", "classes of Java cannot be run here"),
        ("nosuch.module:P", "cannot be loaded: No module named 'nosuch'"),
        ("/nosuch/file.py:P", "cannot be loaded: "),
        (f"{HERE}:Nobody", "has no class Nobody"),
        (f"{HERE}:HERE", "has no class HERE"),
        (f"{HERE}:NoPolicy", r"has no method validate\(request\)"),
        (f"{HERE}:CannotBeMade", "cannot be made: no licence"),
    ],
)
def test_what_is_no_policy_stops_the_start(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as refused:
        load_policies(None, text, {})
    assert "alter.config.policy.class.name" == refused.value.key
