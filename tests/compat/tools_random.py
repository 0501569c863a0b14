"""Run drawn command lines with Kafka's tools and with ours; print where the answers differ.

    python -m tests.compat.tools_random --libs DIR --version 3.9.1 [--seed N] [--stages N]
           --real HOST:PORT=DATA --ours HOST:PORT=DATA [--tools topics,acls] [--calls N]

Both addresses are brokers of Kafka with the same settings, of broker.id 1, with two log directories
DATA/d1 and DATA/d2, an authorizer and `auto.create.topics.enable=false`: Kafka's tools run against
one, ours against the other, so that what a call changes is there for both of the next one. Tools
that read files, sizes or times (`OF_ONE_CLUSTER`) both run against the first. A stage deletes what
an earlier one left, and is drawn from its seed alone. An answer is the exit status, stdout, and the
first message of stderr.
"""

from __future__ import annotations

import argparse
import difflib
import os
import random
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

from tests.cli.fork_server import ForkServer
from tests.cluster.java_tools import ToolServer
from tests.compat.tools.accepted import accepted
from tests.compat.tools.grammar import OF_FOUR, TOOLS
from tests.compat.tools.masking import OF_ONE_CLUSTER, Answer, compared, masked
from tests.compat.tools.shapes import drawn_line
from tests.compat.tools.values import Values

_ODD_SHARE: Final = 0.2
_RETRY_PAUSE_S: Final = 0.7
_CALLS_PER_JVM: Final = 400
_OLD: Final = {
    "acls": "kafka.admin.AclCommand",
    "broker-api-versions": "kafka.admin.BrokerApiVersionsCommand",
    "console-producer": "kafka.tools.ConsoleProducer",
    "dump-log": "kafka.tools.DumpLogSegments",
}
_NEW: Final = {
    "acls": "org.apache.kafka.tools.AclCommand",
    "broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "dump-log": "org.apache.kafka.tools.DumpLogSegments",
}
_CLASSES: Final = {
    "client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "configs": "kafka.admin.ConfigCommand",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "features": "org.apache.kafka.tools.FeatureCommand",
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",
    "topics": "org.apache.kafka.tools.TopicCommand",
    "transactions": "org.apache.kafka.tools.TransactionsCommand",
    "verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
}


#: What options and commands that change a cluster begin with.
_CHANGING: Final = (
    "create",
    "alter",
    "delete",
    "add",
    "remove",
    "execute",
    "cancel",
    "abort",
    "renew",
    "expire",
    "upgrade",
    "downgrade",
    "disable",
    "unregister",
)
#: Tools that change a cluster with any options.
_CHANGING_TOOLS: Final = (
    "console-producer",
    "delete-records",
    "verifiable-producer",
    "producer-perf-test",
    "leader-election",
)


class Call(NamedTuple):
    """A tool, its words, what it reads, and the files that its words name."""

    tool: str
    words: list[str]
    stdin: str
    files: dict[str, str]


class Side:
    """A cluster, the tools that run against it, and a folder of files."""

    def __init__(self, given: argparse.Namespace, cluster: str) -> None:
        self.address, _, self.data = cluster.partition("=")
        self.work = tempfile.mkdtemp(prefix="tools-")
        self.is_four = given.version.startswith("4")
        self._forks = ForkServer.of_this_process()
        #: A home without contexts.
        self._environment = {**os.environ, "HOME": self.work, "KCTL_CONFIG": f"{self.work}/none"}

    def filled(self, text: str) -> str:
        """Return a text with the places of this side."""
        places = (("{BOOTSTRAP}", self.address), ("{DATA}", self.data), ("{WORK}", self.work))
        for name, value in places:
            text = text.replace(name, value)
        return text

    def write_files(self, call: Call) -> None:
        """Write the files that a call names."""
        for name, content in call.files.items():
            (Path(self.work) / name).write_text(self.filled(content), encoding="utf-8")

    def ours(self, tool: str, *words: str, stdin: str = "") -> Answer:
        """Run our tool."""
        release = ["--kafka-version", "4.3"] if self.is_four else []
        line = ["compat", f"kafka-{tool}", *release, *map(self.filled, words)]
        code, out, err = self._forks.run(line, self._environment, stdin.encode())
        return Answer(code, *(text.decode(errors="replace") for text in (out, err)))

    def masked(self, tool: str, answer: Answer) -> Answer:
        """Return an answer without what is of this side alone."""
        places = (self.address, self.data, self.work)
        texts = (masked(tool, text, *places) for text in (answer.stdout, answer.stderr))
        return Answer(answer.status, *texts)


class JavaSide(Side):
    """A cluster that Kafka's own tools run against."""

    def __init__(self, given: argparse.Namespace, cluster: str) -> None:
        super().__init__(given, cluster)
        self._libs = f"{given.libs}/*"
        self._server = ToolServer(self._libs)
        self._count = 0

    def java(self, call: Call) -> Answer:
        """Run Kafka's tool; a process of Java serves some hundred calls."""
        self._count += 1
        if self._count % _CALLS_PER_JVM == 0:
            self._server.close()
            self._server = ToolServer(self._libs)
        classes = {**_CLASSES, **(_NEW if self.is_four else _OLD)}
        words = [classes[call.tool], *map(self.filled, call.words)]
        try:
            return Answer(*self._server.run(words, call.stdin))
        except (AssertionError, BrokenPipeError):
            # A tool that ends the process itself: it gets one of its own.
            self._server = ToolServer(self._libs)
        ended = subprocess.run(
            ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", self._libs, *words],
            input=call.stdin.encode(),
            capture_output=True,
            check=False,
        )
        out, err = ended.stdout.decode(), ended.stderr.decode()
        return Answer(ended.returncode, out, err)


def main() -> int:
    """Run; returns 1 where something differs."""
    given = _arguments()
    real, ours = JavaSide(given, given.real), Side(given, given.ours)
    counts: Counter[str] = Counter()
    for seed in range(given.seed, given.seed + given.stages):
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(_prepare, (real, ours)))
        rng = random.Random(seed)
        for at in range(given.calls):
            call = drawn_call(rng, given)
            counts[f"drawn {call.tool}"] += 1
            kind = _play(real, ours, call, f"{seed}.{at}", given)
            counts[kind] += 1
    for name, count in sorted(counts.items()):
        print(f"{count:6} {name}")
    return int(any(name.startswith("differs") for name in counts))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--libs", required=True, help="the jars of a Kafka release")
    parser.add_argument("--version", default="3.9.1")
    parser.add_argument("--real", required=True)
    parser.add_argument("--ours", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stages", type=int, default=5)
    parser.add_argument("--calls", type=int, default=100, help="of a stage")
    parser.add_argument("--tools", default="", help="the tools to draw, behind commas")
    parser.add_argument(
        "--slow", type=float, default=10.0, help="seconds from which a call is printed as slow"
    )
    return parser.parse_args()


def drawn_call(rng: random.Random, given: argparse.Namespace) -> Call:
    """Return a drawn call."""
    known = [name for name in TOOLS if given.version.startswith("4") or name not in OF_FOUR]
    names = given.tools.split(",") if given.tools else known
    tool = rng.choices(names, [TOOLS[name].weight for name in names])[0]
    shapes = TOOLS[tool]
    values = Values(rng, _ODD_SHARE)
    shape = rng.choice(shapes.shapes)
    has_command = not shape.startswith("-") and tool in ("transactions", "features", "cluster")
    start = drawn_line(shapes.start, rng, values)
    rest = drawn_line(shape, rng, values)
    if tool in ("features", "transactions"):
        options = [*start, *rest] if rng.random() < 0.97 else rest
    else:
        options = [*rest, *start] if rng.random() < 0.5 else [*start, *rest]
    options = _strewn(options, shapes.strewn, rng, values)
    if not has_command and rng.random() < 0.3:
        rng.shuffle(options)
    if rng.random() < 0.06 and len(options) > 1:
        options.pop(rng.randrange(len(options)))
    words = [word for option in options for word in _spelled(option, rng)]
    if rng.random() < 0.02:
        words.insert(
            rng.randrange(len(words) + 1),
            rng.choice(("stray", "--", "-", "", "--no-such", "-x", "---list")),
        )
    if rng.random() < 0.02 and words:
        words.pop()
    stdin = values.lines() if tool == "console-producer" else "y\n"
    return Call(tool, words, stdin, values.files)


def _strewn(
    options: list[list[str]], more: tuple[str, ...], rng: random.Random, values: Values
) -> list[list[str]]:
    """Return options with others among them, or one of them twice."""
    chance = rng.random()
    if chance < 0.22 and more:
        for _ in range(rng.choice((1, 1, 2))):
            options.insert(
                rng.randrange(len(options) + 1), drawn_line(rng.choice(more), rng, values)[0]
            )
    elif chance < 0.26 and options:
        options.insert(rng.randrange(len(options) + 1), rng.choice(options))
    return options


def _spelled(option: list[str], rng: random.Random) -> list[str]:
    """Return the words of an option, spelled in one of the ways that its parser may take."""
    name, *values = option
    chance = rng.random()
    if not name.startswith("--") or chance < 0.85:
        return option
    if chance < 0.94:
        return [f"{name}={values[0]}", *values[1:]] if values else option
    if chance < 0.96:
        return [name[1:], *values]
    if chance < 0.975:
        return [name[:-1], *values]
    if chance < 0.985:
        return [name.upper(), *values]
    return [name] if values else [f"{name}=true"]


def _play(real: JavaSide, ours: Side, call: Call, label: str, given: argparse.Namespace) -> str:
    """Play a call on both sides; returns what to count it as."""
    where = real if call.tool in OF_ONE_CLUSTER else ours
    for attempt in range(2):
        for side in (real, ours):
            side.write_files(call)
        begin = time.monotonic()
        with ThreadPoolExecutor(2) as pool:
            wanted = pool.submit(lambda: (real.java(call), time.monotonic()))
            had = pool.submit(
                lambda: (where.ours(call.tool, *call.words, stdin=call.stdin), time.monotonic())
            )
            (want, want_end), (have, have_end) = wanted.result(), had.result()
        want = compared(call.tool, call.words, real.masked(call.tool, want))
        have = compared(call.tool, call.words, where.masked(call.tool, have))
        kind = _difference(want, have)
        if not kind:
            _print_slow(call, label, want_end - begin, have_end - begin, given)
            return "same"
        if attempt == 0 and is_reading(call) and kind != "message":
            time.sleep(_RETRY_PAUSE_S)
            continue
        break
    reason = accepted(call.tool, call.words, want, have)
    if reason:
        return f"accepted: {reason}"
    line = shlex.join([f"kafka-{call.tool}", *call.words])
    print(f"--- {kind} {label} {line}")
    for name, content in call.files.items():
        print(f"    {name}: {content!r}")
    for row in _shown(want, have):
        print(f"    {row}")
    _print_slow(call, label, want_end - begin, have_end - begin, given)
    sys.stdout.flush()
    return f"differs in {kind}"


def is_reading(call: Call) -> bool:
    """Return whether a call changes nothing, so that it may be repeated after a difference.

    A repeated change could hide one: what exists, or is gone, by then is refused on both sides.
    Options count in each spelling that is drawn: short of a letter, or with one dash.
    """
    return call.tool not in _CHANGING_TOOLS and not any(map(_is_changing, call.words))


def _is_changing(word: str) -> bool:
    name = word.partition("=")[0].lstrip("-").lower()
    return name.startswith(_CHANGING) or any(name == full[:-1] for full in _CHANGING)


def _difference(want: Answer, have: Answer) -> str:
    if want.status != have.status:
        return "status"
    if want.stdout != have.stdout:
        return "stdout"
    return "" if want.stderr == have.stderr else "message"


def _shown(want: Answer, have: Answer) -> list[str]:
    rows = []
    if want.status != have.status:
        rows.append(f"status {want.status} of Kafka, {have.status} of ours")
    lines = (want.stdout.splitlines(), have.stdout.splitlines())
    rows += [row[:600] for row in difflib.unified_diff(*lines, "kafka", "ours", lineterm="", n=1)][
        :40
    ]
    if want.stderr != have.stderr:
        rows += [f"kafka's stderr: {want.stderr[:600]}", f"ours on stderr: {have.stderr[:600]}"]
    return rows


def _print_slow(
    call: Call, label: str, want_s: float, have_s: float, given: argparse.Namespace
) -> None:
    if max(want_s, have_s) > given.slow or have_s > want_s + 5:
        line = shlex.join([f"kafka-{call.tool}", *call.words])
        print(f"... slow {label} {want_s:.1f} s, ours {have_s:.1f} s: {line}", flush=True)


# A stage


def _prepare(side: Side) -> None:
    """Delete what an earlier stage left, and create topics, groups and rules."""
    server = ("--bootstrap-server", side.address)
    run = side.ours
    run("topics", *server, "--delete", "--topic", "[^_].*")
    run("consumer-groups", *server, "--delete", "--all-groups")
    if side.is_four:
        run("share-groups", *server, "--delete", "--all-groups")
    _remove_throttles(side)
    deadline = time.monotonic() + 20
    while run("topics", *server, "--list", "--exclude-internal").stdout.strip():
        assert time.monotonic() < deadline, "topics of an earlier stage stay"
    for topic, partitions in (
        ("orders", 2),
        ("pay.ments", 1),
        ("events_a", 1),
        ("events-b", 3),
        ("solo", 1),
    ):
        ended = run(
            "topics",
            *server,
            "--create",
            "--topic",
            topic,
            "--partitions",
            str(partitions),
            "--replication-factor",
            "1",
        )
        assert ended.status == 0, ended
    lines = "".join(f"k{number}:v{number}\n" for number in range(6))
    keyed = ("--property", "parse.key=true", "--property", "key.separator=:")
    for topic in ("orders", "events_a", "events-b"):
        assert run("console-producer", *server, "--topic", topic, *keyed, stdin=lines).status == 0
    for group, topic, to in (
        ("readers", "orders", "--to-latest"),
        ("other-readers", "events-b", "--to-earliest"),
        ("billing", "orders", "--to-earliest"),
        ("readers", "solo", "--to-latest"),
    ):
        run(
            "consumer-groups",
            *server,
            "--reset-offsets",
            "--group",
            group,
            "--topic",
            topic,
            to,
            "--execute",
        )


def _remove_throttles(side: Side) -> None:
    """Remove rules, quotas, credentials and dynamic settings that an earlier stage made."""
    from tests.compat.tools.clearing import clear_cluster

    clear_cluster(side.address)


if __name__ == "__main__":
    sys.exit(main())
