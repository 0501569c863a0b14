"""The engine answers as Apache Kafka's own classes did; see tools/kafka_answers."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.wire.schema import RELEASES
from tests.unit.wire.answers import engine_answer
from tests.unit.wire.values import all_versions

KEPT = Path(__file__).parent / "kafka_answers"
SHOWN = 5


def kept(name: str, release: str) -> Iterator[tuple[str, str]]:
    """Yield the questions of a file with Kafka's answers."""
    with gzip.open(KEPT / f"{name}-{release}.tsv.gz", "rt", encoding="utf-8", newline="\n") as text:
        for line in text:
            question, _, answer = line.rstrip("\n").partition("\t")
            yield question, answer


def differences(name: str, release: str) -> list[str]:
    """Return the first questions that the engine answers otherwise."""
    return [
        f"{question}\n Kafka  {answer}\n engine {ours}"
        for question, answer in kept(name, release)
        if (ours := engine_answer(release, question)) != answer and "newLimit" not in answer
    ][:SHOWN]


@pytest.mark.parametrize("release", RELEASES)
def test_every_version_of_every_message_is_kafkas_byte_for_byte(release: str) -> None:
    assert [] == differences("messages", release)


@pytest.mark.parametrize("release", RELEASES)
def test_every_version_of_every_message_was_asked(release: str) -> None:
    requested = {tuple(question.split(" ")[1:3]) for question, _ in kept("messages", release)}
    assert requested == {(name, str(v)) for name, v, of in all_versions() if of == release}


@pytest.mark.parametrize("release", RELEASES)
def test_damaged_messages_are_read_as_kafka_reads_them(release: str) -> None:
    assert [] == differences("damaged", release)


@pytest.mark.parametrize("release", RELEASES)
def test_records_of_internal_topics_print_as_kafkas_tool_prints_them(release: str) -> None:
    assert [] == differences("records", release)
