"""The sentences about keys: all have some, none that Kafka has not, and none cost a start."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from engine.config.documentation import broker_documentation, topic_documentation
from engine.config.key import UpdateMode, broker_keys, topic_keys
from engine.config.tables import documentation_here

ALL = [
    pytest.param(name, text, id=name)
    for texts in (topic_documentation(), broker_documentation())
    for name, text in texts.items()
]


def test_every_key_of_a_topic_is_documented() -> None:
    assert set(topic_keys()) == set(topic_documentation())


def test_every_key_of_a_broker_is_documented_that_has_a_static_value() -> None:
    expected = {
        key.name for key in broker_keys().values() if key.update_mode is not UpdateMode.DYNAMIC_ONLY
    }
    assert expected == set(broker_documentation())


def test_the_tables_name_no_key_that_there_is_not() -> None:
    named = [
        line
        for module in (
            "cluster",
            "groups",
            "kraft",
            "logs",
            "network",
            "remote",
            "security",
            "topics",
        )
        for line in _lines(module)
    ]
    assert [] == [name for name in named if name not in broker_keys() and name not in topic_keys()]
    assert len(set(named)) == len(named)


def _lines(module: str) -> list[str]:
    found = __import__(f"engine.config.tables.documentation_{module}", fromlist=["_"])
    (table,) = (value for name, value in vars(found).items() if name.endswith("_TEXTS"))
    return [line for line in table.splitlines() if not line.startswith(" ")]


@pytest.mark.parametrize(("name", "text"), ALL)
def test_a_key_has_sentences(name: str, text: str) -> None:
    assert re.match(r"[A-Z0-9a-z].*[.]$", text), name
    assert 12 <= len(text) <= 700
    assert "  " not in text


def test_every_note_on_the_embedded_broker_is_about_a_key() -> None:
    lines = documentation_here.HERE_TEXTS.splitlines()
    patterns = [each for line in lines if line.startswith(" ") for each in line.split()]
    names = set(broker_keys()) | set(topic_keys())
    without = [
        pattern
        for pattern in patterns
        if not any(
            name == pattern or (pattern[-1] == "*" and name.startswith(pattern[:-1]))
            for name in names
        )
    ]
    assert [] == without
    assert len(set(patterns)) == len(patterns)


def test_a_default_of_topics_is_documented_in_the_topics_words() -> None:
    text = broker_documentation()["log.segment.bytes"]
    assert text.startswith("Holds for topics that do not set segment.bytes themselves. ")
    assert topic_documentation()["segment.bytes"] in text


def test_what_changes_nothing_here_is_said_to() -> None:
    assert "one thread" in broker_documentation()["num.io.threads"]
    assert "of kctl" not in broker_documentation()["num.partitions"]


def test_nothing_of_it_is_loaded_before_somebody_asks() -> None:
    code = (
        "import sys, engine.cluster.run, engine.broker.broker, engine.api.describe_configs;"
        "print([name for name in sys.modules if 'documentation' in name])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "[]" == found.stdout.strip()
