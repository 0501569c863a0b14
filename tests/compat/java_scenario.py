"""Kafka's own tools against two clusters at once: a real broker and ours, step by step.

    python -m tests.compat.java_scenario --scenario FILE --command "run-kafka-tool {tool}"
           --real HOST:PORT=DATA --ours HOST:PORT=DATA [--tools REGEX] [--only REGEX] [--after STEP]

The scenario is a YAML file of steps (tool, args, stdin, …), of the files that they need, and of
rules: regular expressions for what differs from run to run. Each step is played on both clusters,
both answers are brought into one form by the rules, and exit status and stdout are compared.
`{tool}` in the command becomes the tool's name without `kafka-`. Both clusters must be fresh.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import yaml

_RETRY_PAUSE_S = 0.3


class Answer(NamedTuple):
    """What a tool ended with."""

    status: int
    stdout: str
    stderr: str


class Stage:
    """One cluster, with the working directory and the names that its steps have captured."""

    def __init__(
        self, scenario: dict[str, Any], command: str, cluster: str, timeout_s: float
    ) -> None:
        self._timeout_s = timeout_s
        address, _, data = cluster.partition("=")
        self._command = command
        self.work = tempfile.mkdtemp(prefix="scenario-")
        self._data = data
        self._names = {"BOOTSTRAP": address, "WORK": self.work, "DATA": data}
        self._background: dict[str, subprocess.Popen[bytes]] = {}
        for name, text in scenario.get("files", {}).items():
            (Path(self.work) / name).write_text(self._filled(text))

    def _filled(self, text: str) -> str:
        return re.sub(
            r"\{([A-Z][A-Z0-9_]*)\}",
            lambda found: str(self._names.get(found.group(1), found.group(0))),
            text,
        )

    def _arguments(self, step: dict[str, Any]) -> list[str]:
        tool = step["tool"].removeprefix("kafka-")
        words = [word.replace("{tool}", tool) for word in shlex.split(self._command)]
        return words + [self._filled(str(word)) for word in step.get("args", [])]

    def _told(self, stdout: bytes, stderr: bytes, status: int) -> Answer:
        texts = []
        for content in (stdout, stderr):
            text = content.decode(errors="replace").replace(self.work, "{WORK}")
            texts.append(text.replace(self._data, "{DATA}") if self._data else text)
        return Answer(status, *texts)

    def play(self, step: dict[str, Any]) -> Answer | None:
        """Run one step to its end, or begin or end one in the background."""
        mode = step.get("mode", "run")
        if mode == "start":
            self._start(step)
            return None
        if mode == "stop":
            return self._stop(step)
        answer = self._run(step)
        for name, pattern in step.get("capture", {}).items():
            found = re.search(pattern, answer.stdout)
            self._names[name] = found.group(1) if found else f"MISSING_{name}"
        return answer

    def _run(self, step: dict[str, Any]) -> Answer:
        process = subprocess.Popen(
            self._arguments(step),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.work,
            start_new_session=True,
        )
        stdin = self._filled(step.get("stdin", "")).encode()
        try:
            stdout, stderr = process.communicate(stdin, timeout=self._timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
        return self._told(stdout, stderr, process.returncode)

    def _start(self, step: dict[str, Any]) -> None:
        base = Path(self.work) / step["name"]
        with base.with_suffix(".out").open("wb") as out, base.with_suffix(".err").open("wb") as err:
            self._background[step["name"]] = subprocess.Popen(
                self._arguments(step),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=self.work,
                start_new_session=True,
            )

    def _stop(self, step: dict[str, Any]) -> Answer | None:
        process = self._background.pop(step["name"], None)
        if process is None:
            return None
        os.killpg(process.pid, getattr(signal, step.get("signal", "SIGTERM")))
        process.wait()
        base = Path(self.work) / step["name"]
        out, err = (base.with_suffix(suffix).read_bytes() for suffix in (".out", ".err"))
        return self._told(out, err, 0)

    def close(self) -> None:
        """End what still runs."""
        for process in self._background.values():
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class Rules:
    """What differs between two runs of the same cluster, made equal."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        self._rules = {rule["name"]: rule for rule in scenario["rules"]}
        self._always = [rule["name"] for rule in scenario["rules"] if rule.get("always")]

    def applied(self, step: dict[str, Any], text: str) -> str:
        """Return a tool's output in the form that is compared."""
        for name in [*self._always, *step.get("rules", [])]:
            text = re.sub(self._rules[name]["pattern"], self._rules[name]["replace"], text)
        order = step.get("sort")
        if order == "blocks":
            return "".join(sorted(re.split(r"(?m)^(?=\S)", text)))
        lines = [f"{line}\n" for line in text.splitlines()]
        if order == "unique":
            return "".join(sorted(set(lines)))
        return "".join(sorted(lines)) if order else text

    def difference(self, step: dict[str, Any], real: Answer, ours: Answer) -> str:
        """Return how two answers differ, nothing if they do not."""
        requested = step.get("compare", ["exit", "stdout"])
        found = []
        if "exit" in requested and real.status != ours.status:
            found.append(f"exit status: {real.status} from Kafka, {ours.status} from ours\n")
        if "stdout" in requested:
            want, have = (self.applied(step, answer.stdout) for answer in (real, ours))
            found += difflib.unified_diff(
                want.splitlines(keepends=True), have.splitlines(keepends=True), "kafka", "ours"
            )
        return "".join(found)


def _is_played(step: dict[str, Any], version: str, tools: re.Pattern[str]) -> bool:
    if step.get("mode") == "broker" or step.get("needs") or "tool" not in step:
        return False
    return version in step.get("versions", [version]) and bool(tools.fullmatch(step["tool"]))


def play_both(stages: list[Stage], rules: Rules, step: dict[str, Any]) -> tuple[str, list[Any]]:
    """Play a step on both clusters, again for a while if it may; returns the difference."""
    deadline = time.monotonic() + step.get("retry", 0)
    while True:
        with ThreadPoolExecutor(len(stages)) as pool:
            answers = list(pool.map(lambda stage: stage.play(step), stages))
        real, ours = answers
        if real is None or ours is None:
            return "", answers
        difference = rules.difference(step, real, ours)
        is_waited = "until" not in step or re.search(step["until"], real.stdout)
        if (not difference and is_waited) or time.monotonic() > deadline:
            return difference, answers
        time.sleep(_RETRY_PAUSE_S)


def main() -> int:
    """Print each step that differs, then how many did."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--scenario", required=True)
    parser.add_argument("--command", required=True)
    parser.add_argument("--real", required=True)
    parser.add_argument("--ours", required=True)
    parser.add_argument("--version", default="3.9.1")
    parser.add_argument("--tools", default=".*")
    parser.add_argument("--only", default="")
    parser.add_argument("--timeout", type=float, default=90.0, help="seconds for one step")
    parser.add_argument("--after", default="", help="begin behind this step")
    parser.add_argument("-v", "--verbose", action="store_true")
    requested = parser.parse_args()
    scenario = yaml.safe_load(Path(requested.scenario).read_text())
    rules = Rules(scenario)
    stages = [
        Stage(scenario, requested.command, cluster, requested.timeout)
        for cluster in (requested.real, requested.ours)
    ]
    tools = re.compile(requested.tools)
    counts: Counter[str] = Counter()
    ids = [step["id"] for step in scenario["steps"]]
    first = ids.index(requested.after) + 1 if requested.after else 0
    for step in scenario["steps"][first:]:
        if not _is_played(step, requested.version, tools) or not re.search(
            requested.only, step["id"]
        ):
            continue
        difference, answers = play_both(stages, rules, step)
        is_compared = step.get("compare") != [] and answers[0] is not None
        counts["differ" if difference else "same" if is_compared else "not compared"] += 1
        if difference:
            print(f"DIFFERS {step['id']}: {step['tool']} {shlex.join(map(str, step['args']))}")
            print(difference)
            print(f"ours on stderr: {answers[1].stderr[:1000]}", flush=True)
        elif requested.verbose:
            print(f"same {step['id']}", flush=True)
    for stage in stages:
        stage.close()
    print(", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
    return 1 if counts["differ"] else 0


if __name__ == "__main__":
    sys.exit(main())
