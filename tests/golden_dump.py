"""Runs every golden invocation of Kafka's dump tool in this process."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from pathlib import Path
from typing import Any

from kctl.__main__ import main

# Kafka prints byte arrays with an identity hash; ours is a checksum.
_IDENTITY = re.compile(rb"\[B@[0-9a-f]+")


class _Stdout(io.TextIOWrapper):
    """A text stream over memory, as sys.stdout is one over a descriptor."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)

    def taken(self) -> bytes:
        self.flush()
        return self.buffer.getvalue()  # type: ignore[attr-defined, no-any-return]


def run_kctl(args: list[str], folder: Path) -> tuple[int, bytes, str]:
    """Run kctl in a folder; returns exit code, stdout and stderr."""
    out, err = _Stdout(), io.StringIO()
    before = Path.cwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(args)
    finally:
        os.chdir(before)
    return code, out.taken(), err.getvalue()


def difference(invocation: dict[str, Any], outputs: dict[str, bytes], folder: Path) -> str | None:
    """Return how our run differs from Kafka's, None if stdout and exit code are the same."""
    name = invocation.get("stdout")
    expected = outputs[name] if name else b""
    args = ["dump-log", *_version(invocation["kafka"]), *invocation["args"]]
    code, out, err = run_kctl(args, folder)
    if invocation.get("nondeterministic"):
        expected, out = _IDENTITY.sub(b"[B@", expected), _IDENTITY.sub(b"[B@", out)
    where = f"{invocation['id']} ({invocation['kafka']}) {' '.join(invocation['args'])[:200]}"
    if code != invocation["exit"]:
        return f"{where}: expected exit {invocation['exit']}, got {code}: {err[:300]}"
    if out != expected:
        at = next(
            (n for n, (a, b) in enumerate(zip(expected, out, strict=False)) if a != b),
            min(len(expected), len(out)),
        )
        return (
            f"{where}: stdout differs at byte {at}:\n expected {expected[at - 80 : at + 120]!r}"
            f"\n got      {out[at - 80 : at + 120]!r}\n {err[:300]}"
        )
    return None


def _version(kafka: str) -> list[str]:
    return [] if kafka == "3.9.1" else ["--kafka-version", kafka]


if __name__ == "__main__":
    from tests.golden_cases import CASES, case, case_dir, expected_outputs

    wanted = sys.argv[1:] or CASES
    for case_name in wanted:
        invocations = case(case_name)["invocations"]
        outputs = expected_outputs(case_name)
        misses = [m for i in invocations if (m := difference(i, outputs, case_dir(case_name)))]
        print(f"{case_name}: {len(invocations) - len(misses)} of {len(invocations)}")
        for miss in misses[: int(os.environ.get("SHOW", "5"))]:
            print("  ", miss)
