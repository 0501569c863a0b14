"""Ask Apache Kafka's own classes what bytes mean, and keep the answers for the wire tests.

    python -m tools.kafka_answers.make 3.9.1=DIR 4.3.0=DIR [--check EXAMPLES SEED]

DIR holds the jars of kafka-tools and kafka of that release with their dependencies; java and javac
17 are on the path. Writes tests/unit/wire/kafka_answers/*.tsv.gz: one line a question, its fields
and the answer separated by tabs (see Answers.java). With --check nothing is written: EXAMPLES
questions per message version and per kind of record are asked and compared with the engine's
answers, a search for differences that is too slow for every day.
"""

from __future__ import annotations

import gzip
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from random import Random

from engine.wire.schema import RELEASES, message_schema
from tests.unit.wire.answers import engine_answer
from tests.unit.wire.questions import damaged_messages, records, sound_messages

HERE = pathlib.Path(__file__).parent
OUT = HERE.parent.parent / "tests" / "unit" / "wire" / "kafka_answers"
RECORD_PACKAGES = {
    "3.9.1": "org.apache.kafka.common.record",
    "4.3.0": "org.apache.kafka.common.record.internal",
}
RECORD_KINDS = frozenset(("data", "metadata", "key", "value"))


def ask(release: str, jars: str, questions: list[str]) -> list[str]:
    """Return Kafka's answer to each question."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "Answers.java"
        text = (HERE / "Answers.java").read_text().replace("@RECORDS@", RECORD_PACKAGES[release])
        source.write_text(text)
        subprocess.run(["javac", "-cp", f"{jars}/*", "-d", folder, str(source)], check=True)
        told = subprocess.run(
            ["java", "-Xmx512m", "-cp", f"{folder}:{jars}/*", "Answers"],
            input="\n".join(questions).encode(),
            capture_output=True,
            check=True,
        )
    answers = told.stdout.decode().removesuffix("\n").split("\n")
    assert len(answers) == len(questions)
    return answers


def kept_questions(release: str) -> Iterator[tuple[str, list[str]]]:
    """Yield (file name, questions) of what is kept for the tests."""
    yield "messages", list(sound_messages(release, examples=1, seed="kept"))
    damaged = damaged_messages(release, examples=12, seed="kept")
    yield (
        "damaged",
        [q for q in damaged if message_schema(q.split(" ")[1], release).kind in RECORD_KINDS],
    )
    yield "records", list(records(release, examples=150, seed="kept"))


def keep(release: str, jars: str) -> None:
    """Write the files of one release."""
    for name, questions in kept_questions(release):
        lines = zip(questions, ask(release, jars, questions), strict=True)
        raw = "".join(f"{question}\t{answer}\n" for question, answer in lines).encode()
        # No time stamp inside: the same answers give the same file.
        (OUT / f"{name}-{release}.tsv.gz").write_bytes(gzip.compress(raw, mtime=0))


def check(release: str, jars: str, examples: int, seed: str) -> int:
    """Ask many questions; print and count the differences."""
    questions = [
        *sound_messages(release, examples=examples, seed=seed),
        *damaged_messages(release, examples=examples, seed=seed),
        *records(release, examples=examples * 200, seed=seed),
    ]
    Random(seed).shuffle(questions)
    wrong = 0
    for question, answer in zip(questions, ask(release, jars, questions), strict=True):
        ours = engine_answer(release, question)
        # Java's words for bytes that it shares with the buffer are printed by no tool.
        if ours != answer and "newLimit" not in answer:
            wrong += 1
            sys.stdout.write(f"{release} {question}\n  Kafka  {answer}\n  engine {ours}\n")
    sys.stdout.write(f"{release}: {wrong} of {len(questions)} answers differ\n")
    return wrong


def main(words: list[str]) -> int:
    """Keep the answers of each release, or check many."""
    jars = dict(word.split("=", 1) for word in words if "=" in word)
    OUT.mkdir(exist_ok=True)
    wrong = 0
    for release in RELEASES:
        if "--check" in words:
            examples, seed = words[words.index("--check") + 1 :][:2]
            wrong += check(release, jars[release], int(examples), seed)
        else:
            keep(release, jars[release])
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
