"""Why a broker does not run any more, from its log."""

from __future__ import annotations

import pytest

from engine.cluster.halts import LIFE_BEGINS, Halt, read_last_halt
from engine.host.memory import MemoryFiles

AGAIN = "`kctl cluster start`"
BEGIN = f"[2026-01-01 00:00:00,000] INFO 1024 {LIFE_BEGINS} 900 (kafka.cluster)"
STOPPING = "[2026-01-01 00:00:09,000] INFO stopping (kafka.cluster)"
FATAL = "[2026-01-01 00:00:05,000] FATAL every log directory is offline, the last was /d/broker-1"
BEHIND = "[2026-01-01 00:00:05,001] ERROR t-1 was not moved to online"


def offline(reason: str) -> str:
    return (
        "[2026-01-01 00:00:04,999] ERROR Stopping serving replicas in dir /d/broker-1, 1 of them: "
        f"/d/broker-1/t-0/0.log: cannot write: {reason} (kafka.server.ReplicaManager)"
    )


def halt_of(*lines: str, usable_bytes: int = 1 << 30) -> Halt | None:
    files = MemoryFiles()
    files.make_dir("/d")
    files.replace_file("/d/cluster.log", "".join(f"{line}\n" for line in lines).encode())
    used = files.disk_space("/d")
    files.total_bytes = used.total_bytes - used.usable_bytes + usable_bytes
    return read_last_halt(files, "/d/cluster.log", "/d", AGAIN)


@pytest.mark.parametrize(
    ("reason", "hint"),
    [
        ("No space left on device", "make room on that disk"),
        ("Too many open files", "allow more open files (`ulimit -n NUMBER`"),
        ("Input/output error", "see the log before that line, mend its cause"),
    ],
)
def test_the_line_the_cause_and_the_remedy_are_printed(reason: str, hint: str) -> None:
    halt = halt_of(BEGIN, offline(reason), FATAL, *[BEHIND] * 1000)
    assert halt is not None
    assert (FATAL, f"/d/broker-1/t-0/0.log: cannot write: {reason}") == halt[:2]
    assert halt.hint.startswith(hint)
    assert halt.hint.endswith(f"then {AGAIN}")


def test_a_halt_of_an_earlier_life_is_over() -> None:
    assert halt_of(BEGIN, offline("x"), FATAL, BEGIN, STOPPING) is None
    assert halt_of(BEGIN, STOPPING) is None
    assert halt_of() is None
    assert read_last_halt(MemoryFiles(), "/nowhere", "/nowhere", AGAIN) is None


def test_a_broken_rule_has_its_first_line_and_no_directory() -> None:
    fatal = "[2026-01-01 00:00:05,000] FATAL a rule is broken, the next start recovers: x"
    halt = halt_of(BEGIN, fatal, "Traceback", fatal.replace("a rule", "broker 1: state"))
    assert halt is not None
    assert (fatal, None) == halt[:2]


def test_a_full_disk_takes_the_line_itself() -> None:
    halt = halt_of(BEGIN, usable_bytes=4096)
    assert halt is not None
    assert (None, "/d: No space left on device, 4096 bytes are free") == halt[:2]
    assert "make room" in halt.hint
    assert halt_of(BEGIN, STOPPING, usable_bytes=0) is None
