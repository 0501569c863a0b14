"""Compares kctl dump-log with Kafka's tool on damaged copies of the golden logs.

    python -m tools.kafka_dumps.compare --libs DIR --version 3.9.1 [--count 2000] [--seed 1]

`--libs` holds the jars of that Kafka release. Prints each difference; exits with 4 if there is one.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.golden_cases import CASES, case_dir
from tests.golden_dump import run_kctl

_TOOLS = {
    "3.9.1": "kafka.tools.DumpLogSegments",
    "4.3.0": "org.apache.kafka.tools.DumpLogSegments",
}
_LOG_OPTIONS = [
    [], ["--deep-iteration"], ["--print-data-log"], ["--offsets-decoder"],
    ["--print-data-log", "--skip-record-metadata"], ["--transaction-log-decoder"],
    ["--cluster-metadata-decoder"], ["--remote-log-metadata-decoder"],
    ["--value-decoder-class", "org.apache.kafka.tools.api.LongDecoder"],
    ["--key-decoder-class", "org.apache.kafka.tools.api.IntegerDecoder"],
]  # fmt: skip
_INDEX_OPTIONS = [
    [],
    ["--verify-index-only"],
    ["--index-sanity-check"],
    ["--max-message-size", "61"],
]
_SIDE_SUFFIXES = (".index", ".timeindex", ".snapshot", ".txnindex")
_LARGEST_BYTES = 40_000
_IDENTITY = re.compile(rb"\[B@[0-9a-f]+")

Call = tuple[Path, list[str]]


def damaged(content: bytes, source: random.Random) -> bytes:
    """Return a copy with a few bits flipped, bytes changed, cut, put in or taken out."""
    out = bytearray(content)
    if not out:
        return content
    kind = source.random()
    at = source.randrange(len(out))
    if kind < 0.55:
        for _ in range(source.randint(1, 3)):
            out[source.randrange(len(out))] ^= 1 << source.randrange(8)
    elif kind < 0.70:
        near = min(len(out), source.choice([61, 100, 400, len(out)]))
        for _ in range(source.randint(1, 4)):
            out[source.randrange(near)] = source.choice([0, 1, 2, 127, 128, 255])
    elif kind < 0.80:
        del out[at:]
    elif kind < 0.87:
        out[at:at] = source.randbytes(source.randint(1, 30))
    elif kind < 0.94:
        del out[at : at + source.randint(1, 30)]
    else:
        size = source.randint(1, 80)
        out += source.choice([bytes(size), source.randbytes(size)])
    return bytes(out)


def make_calls(folder: Path, count: int, source: random.Random) -> list[Call]:
    """Write damaged files into folders of their own; returns each with the tool's arguments."""
    logs = [
        path
        for case in CASES
        for path in sorted(case_dir(case).rglob("*"))
        if path.suffix in (".log", ".checkpoint") and 0 < path.stat().st_size < _LARGEST_BYTES
    ]
    return [
        _make_call(folder / str(number), source.choice(logs), source) for number in range(count)
    ]


def _make_call(folder: Path, log: Path, source: random.Random) -> Call:
    folder.mkdir()
    content = log.read_bytes()
    sides = [log.with_suffix(suffix) for suffix in _SIDE_SUFFIXES]
    sides = [side for side in sides if side.exists()]
    if source.random() < 0.72 or not sides:
        (folder / log.name).write_bytes(damaged(content, source))
        return folder, [*source.choice(_LOG_OPTIONS), "--files", str(folder / log.name)]
    (folder / log.name).write_bytes(content if source.random() < 0.7 else damaged(content, source))
    for side in sides:
        raw = side.read_bytes()[:_LARGEST_BYTES]
        (folder / side.name).write_bytes(damaged(raw, source) if source.random() < 0.6 else raw)
    if not (folder / log.with_suffix(".index").name).exists():
        (folder / log.with_suffix(".index").name).write_bytes(b"")
    chosen = folder / source.choice(sides).name
    return folder, [*source.choice(_INDEX_OPTIONS), "--files", str(chosen)]


def kafkas_answers(libs: Path, version: str, calls: list[Call]) -> list[tuple[int, bytes, str]]:
    """Return exit code, stdout and exception of Kafka's tool for each call."""
    with tempfile.TemporaryDirectory() as classes:
        classpath = f"{classes}:{libs}/*"
        source = Path(__file__).parent / "Dumps.java"
        # Scala's console is in the jars of either release.
        subprocess.run(["javac", "-cp", classpath, "-d", classes, source], check=True)
        lines = "".join("\t".join(arguments) + "\n" for _, arguments in calls)
        run = subprocess.run(
            ["java", "-Xmx2g", "-cp", classpath, "Dumps", _TOOLS[version]],
            input=lines.encode(), stdout=subprocess.PIPE, check=True,
        )  # fmt: skip
    answers, position = [], 0
    for _ in calls:
        end = run.stdout.index(b"\n", position)
        code, size, *why = run.stdout[position:end].decode("utf-8", "replace").split(" ", 2)
        text = run.stdout[end + 1 : end + 1 + int(size)]
        answers.append((int(code), text, why[0] if why else ""))
        position = end + 2 + int(size)
    return answers


def main() -> int:
    """Compare; returns the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--libs", type=Path, required=True)
    parser.add_argument("--version", choices=_TOOLS, required=True)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    requested = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Path(folder) / "logs", Path(folder) / "kept"
        ours.mkdir()
        calls = make_calls(ours, requested.count, random.Random(requested.seed))
        shutil.copytree(ours, theirs)
        answers = kafkas_answers(requested.libs, requested.version, calls)
        # Kafka's tool trims and creates indexes: ours sees what it saw.
        shutil.rmtree(ours)
        shutil.copytree(theirs, ours)
        bad = sum(
            _differs(call, answer, requested.version)
            for call, answer in zip(calls, answers, strict=True)
        )
    print(f"{requested.count} calls, {bad} differ")
    return 4 if bad else 0


def _differs(call: Call, answer: tuple[int, bytes, str], version: str) -> bool:
    folder, arguments = call
    code, out, err = run_kctl(["dump-log", "--kafka-version", version, *arguments], folder)
    expected_code, expected, why = answer
    same = _IDENTITY.sub(b"", out) == _IDENTITY.sub(b"", expected)
    if code == expected_code and same:
        return False
    print(
        f"{' '.join(arguments)}\n  Kafka: {expected_code} {why[:200]}\n  ours: {code} {err[:200]}"
    )
    return True


if __name__ == "__main__":
    sys.exit(main())
