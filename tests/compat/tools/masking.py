"""What may differ between two clusters in the same state, and how an answer is compared."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import groupby
from typing import Final, NamedTuple

from tests.compat.tools.grammar import OF_FOUR


class Answer(NamedTuple):
    """Exit status and texts of a call."""

    status: int
    stdout: str
    stderr: str


#: Tools that change nothing, and show times, checksums, sizes, or offsets of internal topics: both
#: run against the same cluster.
OF_ONE_CLUSTER: Final = ("dump-log", "get-offsets", "log-dirs")
#: What two clusters in the same state, or two records of the same call, cannot have in common.
_OF_A_CLUSTER: Final = (
    (r"TopicId: [A-Za-z0-9_-]{22}", "TopicId: <ID>"),
    (r"\b1[67]\d{11}\b", "<MS>"),
    (r"\bCluster ID: [A-Za-z0-9_-]{22}", "Cluster ID: <ID>"),
    (r"\bcrc: \d+", "crc: <CRC>"),
    (r'"size":\d+', '"size":<N>'),
)
#: What two processes cannot have in common.
_MASKS: Final = (
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<UUID>"),
    (r"\bfrom 20\d\d-[-\d:T .Z]+", "from <TIME>"),
    (r"deadlineMs=\d+", "deadlineMs=<MS>"),
    (r"tries=\d+", "tries=<N>"),
    (r"callName=(\w+), deadlineMs=<MS>, tries=<N>, nextAllowedTryMs=-?\d+", r"callName=\1"),
    (r"nextAllowedTryMs=(-?\d+|<MS>)", "nextAllowedTryMs=<MS>"),
    (r"timed out at (\d+|<MS>) after \d+ attempt\(s\)", "timed out at <MS> after <N> attempts"),
    (r"@[0-9a-f]{5,8}\b", "@<HASH>"),
    (r"[\d.]+ (records/sec|MB/sec|ms (?:avg|max|50th|95th|99th|99\.9th))", r"<N> \1"),
    (r'"timestamp":\d+', '"timestamp":<MS>'),
    (r'"avg_throughput":[\d.E]+', '"avg_throughput":<N>'),
    (
        r"(?m)^\[20\d\d-\d\d-\d\d[ T][\d:,.]+\] .*\n"
        r"(?:(?:org|java|joptsimple|kafka)\.[\w.$]+(?:Exception|Error)\b.*\n)*",
        "",
    ),
    (r"(?m)^.*\((?:org\.apache\.)?kafka\.[\w.$]+\)\n", ""),
    (r"(?m)^\d+\.\d+\.\d+( \(Commit:[0-9a-f]+\))?$", "<VERSION>"),
)
#: The frames of a Java trace, and the exceptions that it names.
_FRAMES: Final = re.compile(r"(?m)^(?:\tat |\t\.\.\. \d+ (?:more|common))[^\n]*\n")
_CAUSES: Final = re.compile(r"(?m)^\t?(?:Caused by|Suppressed): [^\n]*\n")
_EXCEPTION: Final = re.compile(
    r'(?m)^(?:Exception in thread "main" )?(?:org|java|com|kafka|joptsimple|scala)\.[\w.$]+'
    r"(?:Exception|Error|Timeout\w*)\b(?:: [^\n]*)?\n+"
)
#: Messages that name options in the order of Java's immutable sets, another in each process.
_OF_SETS: Final = (
    r"(?<=Valid states are: ).*",
    r"(?<=can't be used with option ).*",
    r"(?<=requires one of the following scenarios: ).*",
)
_CLASS: Final = re.compile(r'^(?:Exception in thread "main" )?(?:[a-z]\w*\.)+[A-Z][\w.$]*: ')


def masked(tool: str, text: str, address: str, data: str, work: str) -> str:
    """Return a text without what belongs to one cluster or one process."""
    text = text.replace(work, "{WORK}").replace(data, "{DATA}").replace(address, "{BOOTSTRAP}")
    text = text.replace(address.replace("127.0.0.1", "localhost"), "{BOOTSTRAP}")
    for pattern, shown in (*(() if tool in OF_ONE_CLUSTER else _OF_A_CLUSTER), *_MASKS):
        text = re.sub(pattern, shown, text)
    return text


def compared(tool: str, words: Sequence[str], answer: Answer) -> Answer:
    """Return an answer without Java's traces, and of stderr the first message alone."""
    stdout = _without_traces(answer.stdout)
    if tool == "console-consumer" and not any(word.startswith("--partition") for word in words):
        # Several partitions come in any order.
        stdout = "".join(sorted(f"{line}\n" for line in stdout.splitlines()))
    if tool == "acls":
        stdout = _in_order_of_resources(stdout)
    if tool == "verifiable-producer":
        # Fields come in the order of Java's reflection.
        stdout = "".join(_sorted_fields(line) + "\n" for line in stdout.splitlines())
    if stdout.startswith("usage: "):
        stdout = "usage\n"
    message = _in_one_order(first_message(answer.stderr))
    if tool in OF_FOUR:
        for pattern in _OF_SETS:
            message = re.sub(pattern, "<SET>", message)
    return Answer(answer.status, stdout, message)


def _in_order_of_resources(text: str) -> str:
    """Return lists of rules, each with the line of its resource, in an order of their own.

    Resources and rules come by the hashes of Java's enums, which are others in each process. Lists
    before and after a change stay apart.
    """
    blocks: list[tuple[str, list[str]]] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith("(") and blocks:
            blocks[-1][1].append(line)
        else:
            blocks.append((line, []))
    out: list[str] = []
    for _, lists in groupby(blocks, lambda block: block[0].partition("`")[0]):
        for head, rules in sorted((head, sorted(rules)) for head, rules in lists):
            out += [head, *rules]
    return "".join(f"{line}\n" for line in out)


def _in_one_order(message: str) -> str:
    begin, words, operations = message.partition("only supports operations ")
    return f"{begin}{words}{', '.join(sorted(operations.split(', ')))}"


def _without_traces(text: str) -> str:
    for pattern in (_FRAMES, _CAUSES, _EXCEPTION):
        text = pattern.sub("", text)
    return text.rstrip("\n") + "\n"


def first_message(text: str) -> str:
    """Return the first line that is not blank, without the class of an exception.

    After the usage of argparse4j it is the error at its end.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    if text.startswith("usage: "):
        _, _, error = text.partition(": error: ")
        return " ".join(error.partition("Did you mean")[0].split())
    return _CLASS.sub("", lines[0]) if lines else ""


def _sorted_fields(line: str) -> str:
    try:
        return json.dumps(json.loads(line.replace("<MS>", "0")), sort_keys=True)
    except ValueError:
        return line
