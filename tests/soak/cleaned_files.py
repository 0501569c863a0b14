"""The files of compacted logs: what a kill left of a change, and what they are at rest."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path

from engine.host.real import RealFiles
from engine.inspection.verify import verify_log_dir, verify_partition
from engine.log.directory.log_dir import read_log_dir
from tests.cluster.java_tools import JavaTools
from tests.soak.checks import ask_kafka
from tests.soak.writers import Place

_CHANGES = (".cleaned", ".swap", ".deleted")
_START_OFFSETS = "log-start-offset-checkpoint"
# A single word on a command line may have 128 KiB.
_FILES_A_CALL = 400
_COMPLAINTS = ("isvalid: false", "invalid bytes", "ismatch", "not found", "Exception", "Could not")


def wait_for(log_dir: Path, suffix: str, timeout_s: float) -> bool:
    """Return as soon as a file with a suffix is there; False if none came in time."""
    folders = [path for path in log_dir.iterdir() if path.is_dir()]
    end_s = time.monotonic() + timeout_s
    while time.monotonic() < end_s:
        for folder in folders:
            if any(name.endswith(suffix) for name in os.listdir(folder)):
                return True
        time.sleep(0)
    return False


def suffixes(log_dir: Path) -> Counter[str]:
    """Return how many files of a change are there, by their suffix."""
    return Counter(p.suffix for p in log_dir.glob("*-*/*") if p.suffix in _CHANGES)


def start_offset(log_dir: Path, place: Place) -> int:
    """Return where a stopped broker's log starts."""
    first = min(int(path.stem) for path in (log_dir / "{}-{}".format(*place)).glob("*.log"))
    checkpoint = log_dir / _START_OFFSETS
    rows = checkpoint.read_text().splitlines()[2:] if checkpoint.exists() else []
    noted = {tuple(row.rsplit(" ", 2)[:2]): int(row.rsplit(" ", 1)[1]) for row in rows}
    return max(first, noted.get((place.topic, str(place.partition)), 0))


def verify(log_dir: Path, tools: JavaTools | None) -> int:
    """Check all files of a stopped broker by our rules and by Kafka's; returns its segments."""
    files = RealFiles()
    found = read_log_dir(files, str(log_dir))
    problems = [finding for finding in verify_log_dir(found) if finding.is_problem]
    for partition in found.partitions:
        if partition.is_kept:
            report = verify_partition(files, partition, found.state)
            problems += [finding for finding in report.findings if finding.is_problem]
    assert not problems, problems[:10]
    segments = sorted(map(str, log_dir.glob("*-*/*.log")))
    if tools is not None:
        ask_kafka(tools, log_dir)
        _dump(tools, segments)
    return len(segments)


def _dump(tools: JavaTools, segments: list[str]) -> None:
    """Have Kafka's own tool read every record of every segment."""
    for first in range(0, len(segments), _FILES_A_CALL):
        named = segments[first : first + _FILES_A_CALL]
        ended = tools.run("dump-log", "--deep-iteration", "--files", ",".join(named))
        said = ended.stdout + ended.stderr
        assert ended.status == 0, said[-3000:]
        assert said.count("Dumping ") == len(named)
        # Offsets that do not follow each other are what cleaning leaves.
        wrong = [line for line in said.splitlines() if any(word in line for word in _COMPLAINTS)]
        assert not wrong, wrong[:5]
