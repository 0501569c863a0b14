"""Calls of kafka-share-groups and kafka-streams-groups, as Java's tools of 4.3.0 answered them.

`tests/golden/tools/group_tools_of_4_3.json.gz` holds the calls below in order: what Java's tool
printed and returned on a node of Kafka 4.3.0, and every exchange of our tool with another node in
the same state. `python -m tools.record_group_tools` makes it. In a replay our tool is given the
recorded responses, as in `tests/client_session.py`.
"""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import kctl.connect
from tests.client_session import FakeClock, FixedEntropy, Outcome, Player, run_with

RECORDING = Path(__file__).parent / "golden" / "tools" / "group_tools_of_4_3.json.gz"
#: Where the recorded node listens; nothing listens at the other address.
ADDRESS, NOBODY = "127.0.0.1:28592", "127.0.0.1:28599"
_RELEASE = ("--kafka-version", "4.3.0")


class Call(NamedTuple):
    """One call of a tool; `B` among its words stands for the option of the node's address."""

    tool: str
    words: str

    @property
    def name(self) -> str:
        return f"{self.tool.removeprefix('kafka-')} {self.words}"

    def arguments(self, folder: str) -> list[str]:
        """Return the words of the call; `@` begins the path of a file in a folder."""
        words = []
        for word in self.words.split():
            if word == "B":
                words += ["--bootstrap-server", ADDRESS]
            elif word == "B?":
                words += ["--bootstrap-server", NOBODY]
            else:
                words.append("" if word == "''" else word.replace("@", f"{folder}/"))
        return words


class Preparation(NamedTuple):
    """What is done between calls; `tools/record_group_tools.py` has the steps by these names."""

    name: str


FILES = {
    "plan.csv": "lines,0,1\nlines,1,2\n",
    "plan-groups.csv": "counter,lines,0,2\ncopier,lines,1,1\n",
    "plan-bad.csv": "lines,zero,1\n",
    "client.properties": "client.id=operator\n",
    "bad.properties": "request.timeout.ms=soon\n",
}


def _calls(tool: str, text: str) -> list[Call | Preparation]:
    return [Call(tool, line.strip()) for line in text.strip().splitlines()]


def _share(text: str) -> list[Call | Preparation]:
    return _calls("kafka-share-groups", text)


def _streams(text: str) -> list[Call | Preparation]:
    return _calls("kafka-streams-groups", text)


_OPTIONS_OF_SHARE = """
    --version
    --list
    --bootstrap-server
    B
    B --list --bogus
    B --group ghost
    B --list --describe --all-groups
    B --list --delete --group ghost
    B --list --state bogus
    B --list --state stable,bogus
    B --list --state Assigning
    B --list --members
    B --list --verbose
    B --list --group ghost
    B --list --topic parcels
    B --list --timeout soon
    B --list --state Empty --state Stable
    B --describe
    B --describe --group ghost --all-groups
    B --describe --group ghost --members --offsets
    B --describe --group ghost --state --offsets --members
    B --describe --group ghost --state Empty
    B --describe --group ghost --topic parcels
    B --describe --group
    B --delete
    B --delete --all-groups --group ghost
    B --delete --group ghost --topic parcels
    B --delete --all-groups --topic parcels
    B --delete --group ghost --state
    B --delete-offsets
    B --delete-offsets --group ghost
    B --delete-offsets --topic parcels
    B --reset-offsets
    B --reset-offsets --dry-run --execute
    B --reset-offsets --dry-run
    B --reset-offsets --dry-run --all-groups --all-topics --to-latest
    B --reset-offsets --dry-run --group ghost
    B --reset-offsets --dry-run --group ghost --all-topics
    B --reset-offsets --group ghost --all-topics --to-latest
    B --reset-offsets --execute --group ghost --topic parcels --to-offset 3
    B --reset-offsets --dry-run --group ghost --topic parcels --to-earliest --to-latest
    B --reset-offsets --dry-run --group ghost --topic parcels --to-latest --to-datetime x
    B --reset-offsets --dry-run --group ghost --topic parcels --all-groups --to-latest
    B --dry-run --list
    --list --bootstrap-server nowhere
    --list --bootstrap-server ,
    --list --bootstrap-server a:1,b:1,a:1
    --list --bootstrap-server ''
    B --list --state Stable,,Empty
    B --list --command-config @none.properties
    B --list --command-config @bad.properties
    --bootstrap-server a:1 --bootstrap-server b:2 --list
"""
_OPTIONS_OF_STREAMS = """
    --version
    --list
    B
    B --list --bogus
    B --list --topic lines
    B --group ghost
    B --list --describe --all-groups
    B --list --state bogus
    B --list --state PreparingRebalance
    B --list --members
    B --list --offsets
    B --list --verbose
    B --list --group ghost
    B --list --input-topic lines
    B --list --timeout soon
    B --list --state Empty --state Stable
    B --list --dry-run
    B --list --delete-all-internal-topics
    B --list --delete-internal-topic counter-words-repartition
    B --describe
    B --describe --group ghost --all-groups
    B --describe --group ghost --members --offsets
    B --describe --group ghost --state Empty
    B --describe --group ghost --input-topic lines
    B --describe --group ghost --execute
    B --delete
    B --delete --group ghost --all-groups
    B --delete --group ghost --input-topic lines
    B --delete --group ghost --all-input-topics
    B --delete --group ghost --delete-internal-topic lines
    B --delete --group ghost --execute
    B --delete-offsets
    B --delete-offsets --group ghost
    B --delete-offsets --input-topic lines
    B --delete-offsets --group ghost --group other --input-topic lines
    B --delete-offsets --all-groups --input-topic lines
    B --reset-offsets
    B --reset-offsets --dry-run --execute
    B --reset-offsets --dry-run
    B --reset-offsets --to-latest --group ghost --all-input-topics
    B --reset-offsets --dry-run --group ghost
    B --reset-offsets --dry-run --group ghost --to-latest
    B --reset-offsets --dry-run --group ghost --all-groups --to-latest
    B --reset-offsets --dry-run --group ghost --input-topic lines --to-latest --to-earliest
    B --reset-offsets --dry-run --group ghost --to-offset 1 --shift-by 2
    B --reset-offsets --dry-run --group ghost --from-file x --to-current
    B --reset-offsets --dry-run --group ghost --input-topic lines --to-latest --delete-all-internal-topics
    B --reset-offsets --dry-run --group ghost --input-topic lines --to-latest --delete-internal-topic x
    B --list --command-config @none.properties
    B --list --command-config @bad.properties
    --list --bootstrap-server nowhere
    --bootstrap-server a:1 --bootstrap-server b:2 --list
"""  # noqa: E501
_WITHOUT_GROUPS_OF_SHARE = """
    B --list
    B --list --state
    B --list --state Empty
    B --list --state=
    B --list --state ''
    B --describe --all-groups
    B --describe --all-groups --members
    B --describe --group ghost
    B --describe --group ghost --members
    B --describe --group ghost --state
    B --describe --group ''
    B --delete --group ghost
    B --delete --all-groups
    B --delete-offsets --group ghost --topic parcels
    B --delete-offsets --group ghost --topic nowhere --topic parcels
    B --delete-offsets --group ghost --group other --topic parcels
    B --reset-offsets --dry-run --group ghost --all-topics --to-latest
    B --reset-offsets --dry-run --group ghost --topic parcels --to-earliest
    B --reset-offsets --dry-run --group ghost --topic nowhere --to-earliest
    B --reset-offsets --dry-run --group ghost --topic parcels:7 --to-earliest
    B --reset-offsets --dry-run --group ghost --topic parcels:x --to-earliest
    B --reset-offsets --dry-run --group ghost --topic parcels:1:2 --to-earliest
    B --reset-offsets --dry-run --group ghost --topic parcels: --to-earliest
    B --reset-offsets --dry-run --group ghost --topic :0 --to-earliest
    B --reset-offsets --dry-run --group ghost --topic '' --to-earliest
    B --reset-offsets --dry-run --group ghost --topic stock --topic parcels:1 --to-latest
    B --reset-offsets --dry-run --group ghost --group other --topic parcels --to-latest
    B --reset-offsets --dry-run --group '' --topic parcels --to-latest
    B --reset-offsets --execute --group '' --topic parcels --to-latest
    B --delete-offsets --group '' --topic parcels
    B --delete --group ''
    B --list --command-config @client.properties
    B? --list --timeout 400
    B? --list --state --timeout 400
    B? --describe --group ghost --timeout 400
    B? --delete --group ghost --timeout 400
    B? --delete-offsets --group ghost --topic parcels --timeout 400
    B? --reset-offsets --dry-run --group ghost --topic parcels --to-latest --timeout 400
"""
_WITHOUT_GROUPS_OF_STREAMS = """
    B --list
    B --list --state
    B --list --state Empty,Stable
    B --list --state=
    B --describe --all-groups
    B --describe --group ''
    B --describe --group ghost
    B --describe --group ghost --state
    B --delete --group ghost
    B --delete --all-groups
    B --delete-offsets --group ghost --input-topic lines
    B --delete-offsets --group ghost --all-input-topics
    B --delete-offsets --group ghost --input-topic nowhere
    B --delete-offsets --group ghost --input-topic lines:x
    B --reset-offsets --dry-run --group ghost --all-input-topics --to-latest
    B --reset-offsets --dry-run --group ghost --input-topic lines --to-latest
    B --reset-offsets --dry-run --group ghost --input-topic nowhere --to-latest
    B --reset-offsets --dry-run --all-groups --input-topic lines --to-latest
    B --reset-offsets --dry-run --group ghost --from-file @plan.csv
    B --reset-offsets --execute --group ghost --input-topic lines --to-latest
    B --reset-offsets --execute --group simple --from-file @plan.csv
    B --describe --group simple
    B --list --command-config @client.properties
    B? --list --timeout 400
    B? --list --state --timeout 400
    B? --describe --group ghost --timeout 400
    B? --delete --group ghost --timeout 400
    B? --delete-offsets --group ghost --input-topic lines --timeout 400
    B? --delete-offsets --group ghost --all-input-topics --timeout 400
    B? --reset-offsets --dry-run --group ghost --input-topic lines --to-latest --timeout 400
"""
_RUNNING_OF_SHARE = """
    B --list
    B --list --state
    B --list --state=stable
    B --list --state Empty,dead
    B --describe --group packers
    B --describe --group packers --offsets --verbose
    B --describe --group packers --members
    B --describe --group packers --members --verbose
    B --describe --group packers --state
    B --describe --group packers --state --verbose
    B --describe --all-groups
    B --describe --all-groups --state
    B --describe --group packers --group pickers --members
    B --describe --group pickers --group pickers --state
    B --describe --group packers --group ghost
    B --describe --group audit
    B --describe --group counter
    B --delete --group packers
    B --delete --group audit
    B --delete --all-groups
    B --delete-offsets --group packers --topic parcels
    B --delete-offsets --group audit --topic parcels
    B --reset-offsets --dry-run --group packers --topic parcels --to-latest
    B --reset-offsets --execute --group packers --all-topics --to-earliest
    B --reset-offsets --dry-run --group audit --topic parcels --to-latest
    B --reset-offsets --execute --group audit --topic parcels --to-latest
"""
_RUNNING_OF_STREAMS = """
    B --list
    B --list --state
    B --list --state=stable,notready
    B --list --state Empty
    B --describe --group counter
    B --describe --group counter --verbose
    B --describe --group counter --members
    B --describe --group counter --members --verbose
    B --describe --group counter --state
    B --describe --group counter --state --verbose
    B --describe --all-groups
    B --describe --all-groups --state
    B --describe --group copier --group counter --offsets
    B --describe --group copier --group ghost
    B --describe --group audit
    B --describe --group packers
    B --delete --group counter
    B --delete --group audit
    B --delete-offsets --group counter --input-topic lines
    B --delete-offsets --group counter --all-input-topics
    B --delete-offsets --group audit --input-topic parcels
    B --reset-offsets --dry-run --group counter --all-input-topics --to-latest
    B --reset-offsets --execute --group counter --input-topic lines --to-earliest
    B --reset-offsets --dry-run --group audit --input-topic lines --to-earliest
"""
_STOPPED_OF_SHARE = """
    B --list --state
    B --describe --group packers
    B --describe --group packers --verbose
    B --describe --group packers --members
    B --describe --group packers --state
    B --describe --all-groups --state --verbose
    B --describe --all-groups --offsets --verbose
    B --reset-offsets --dry-run --group packers --all-topics --to-earliest
    B --reset-offsets --dry-run --group packers --topic parcels --to-latest
    B --reset-offsets --dry-run --group packers --topic parcels:0,2 --topic stock --to-latest
    B --reset-offsets --dry-run --group packers --topic lines --to-latest
    B --reset-offsets --dry-run --group packers --topic parcels --to-datetime 2024-06-01T00:00:02.000Z
    B --reset-offsets --dry-run --group packers --topic parcels --to-datetime 2030-01-01T00:00:00.000
    B --reset-offsets --dry-run --group packers --topic parcels --to-datetime yesterday
    B --reset-offsets --dry-run --group packers --topic parcels:9 --to-latest
    B --reset-offsets --dry-run --group packers --topic parcels:0,0 --to-latest
    B --reset-offsets --dry-run --group packers --topic nowhere --to-latest
    B --describe --group packers
    B --reset-offsets --execute --group packers --topic parcels:0,1 --to-earliest
    B --describe --group packers
    B --reset-offsets --execute --group packers --all-topics --to-latest
    B --describe --group packers --verbose
    B --reset-offsets --execute --group fresh --topic stock --to-earliest
    B --describe --group fresh
    B --delete-offsets --group packers --topic stock
    B --delete-offsets --group packers --topic lines --topic nowhere --topic parcels
    B --delete-offsets --group packers --topic stock
    B --describe --group packers
    B --reset-offsets --dry-run --group packers --all-topics --to-earliest
    B --delete --group ghost --group fresh
    B --delete --group packers --dry-run
    B --delete --all-groups
    B --list
"""  # noqa: E501
_STOPPED_OF_STREAMS = """
    B --list --state
    B --describe --group counter
    B --describe --group counter --members --verbose
    B --describe --group counter --state
    B --describe --all-groups --state --verbose
    B --reset-offsets --dry-run --group counter --all-input-topics --to-earliest
    B --reset-offsets --dry-run --group counter --input-topic lines --to-latest
    B --reset-offsets --dry-run --group counter --input-topic lines:1 --to-offset 2
    B --reset-offsets --dry-run --group counter --input-topic lines --to-offset 900
    B --reset-offsets --dry-run --group counter --input-topic lines --to-offset 2 --to-offset 1
    B --reset-offsets --dry-run --group counter --input-topic lines --shift-by 1 --shift-by 2
    B --reset-offsets --dry-run --group counter --input-topic lines:0,0 --to-offset 2
    B --reset-offsets --dry-run --group counter --input-topic lines:0,0 --shift-by -1
    B --reset-offsets --dry-run --group counter --input-topic lines:0,0 --to-current
    B --describe --group counter --to-offset many
    B --reset-offsets --dry-run --group counter --input-topic lines --to-offset=-1
    B --reset-offsets --dry-run --group counter --input-topic lines --to-offset many
    B --reset-offsets --dry-run --group counter --input-topic lines --shift-by -1
    B --reset-offsets --dry-run --group counter --input-topic lines --to-current
    B --reset-offsets --dry-run --group counter --input-topic lines --to-datetime 2024-06-01T00:00:02.000Z
    B --reset-offsets --dry-run --group counter --input-topic lines --by-duration PT1S
    B --reset-offsets --dry-run --group counter --input-topic lines --by-duration soon
    B --reset-offsets --dry-run --group counter --input-topic lines --by-duration P90000D
    B --reset-offsets --dry-run --group counter --from-file @plan.csv
    B --reset-offsets --dry-run --group copier --group counter --from-file @plan-groups.csv
    B --reset-offsets --dry-run --group counter --from-file @plan-bad.csv
    B --reset-offsets --dry-run --group counter --from-file @none.csv
    B --reset-offsets --dry-run --group copier --from-file @plan-groups.csv
    B --reset-offsets --dry-run --all-groups --from-file @plan-groups.csv
    B --reset-offsets --dry-run --group counter --input-topic lines --to-latest --export
    B --reset-offsets --dry-run --all-groups --all-input-topics --to-earliest --export
    B --reset-offsets --dry-run --all-groups --all-input-topics --to-earliest
    B --reset-offsets --dry-run --group counter --all-input-topics
    B --reset-offsets --dry-run --group counter --input-topic parcels --to-latest
    B --reset-offsets --dry-run --group counter --input-topic lines:0,7 --to-latest
    B --reset-offsets --dry-run --group counter --input-topic lines:0,0 --to-latest
    B --reset-offsets --dry-run --group counter --input-topic lines:a --to-latest
    B --reset-offsets --dry-run --group counter --input-topic nowhere --to-latest
    B --reset-offsets --dry-run --group counter --input-topic counter-words-repartition --to-earliest
    B --reset-offsets --execute --group counter --input-topic lines:0 --to-earliest
    B --reset-offsets --dry-run --group counter --input-topic lines --to-current
    B --reset-offsets --execute --group counter --all-input-topics --shift-by 1
    B --reset-offsets --execute --group copier --all-input-topics --to-latest --delete-internal-topic nowhere
    B --reset-offsets --execute --group counter --all-input-topics --to-latest --delete-internal-topic counter-words-repartition
    B --reset-offsets --execute --group copier --all-input-topics --to-earliest --delete-all-internal-topics
    B --delete-offsets --group copier --input-topic lines:1
    B --delete-offsets --group copier --input-topic lines --input-topic nowhere --input-topic stock
    B --delete-offsets --group copier --all-input-topics
    B --delete-offsets --group counter --all-input-topics
    B --delete-offsets --group counter --all-input-topics
    B --reset-offsets --dry-run --group counter --input-topic lines --to-current
    B --reset-offsets --dry-run --group counter --all-input-topics --to-earliest
    B --reset-offsets --execute --group counter --all-input-topics --to-earliest --delete-all-internal-topics
    B --delete --group ghost --group copier
    B --delete --group counter --delete-all-internal-topics
    B --delete --all-groups
    B --delete --all-groups --delete-all-internal-topics
    B --list
"""  # noqa: E501

STEPS: list[Call | Preparation] = [
    *_share(_OPTIONS_OF_SHARE),
    *_streams(_OPTIONS_OF_STREAMS),
    Preparation("topics"),
    *_share(_WITHOUT_GROUPS_OF_SHARE),
    *_streams(_WITHOUT_GROUPS_OF_STREAMS),
    Preparation("members"),
    *_share(_RUNNING_OF_SHARE),
    *_streams(_RUNNING_OF_STREAMS),
    Preparation("stop"),
    *_share(_STOPPED_OF_SHARE),
    *_streams(_STOPPED_OF_STREAMS),
    Preparation("members again"),
    Preparation("stop"),
    *_streams("""
        B --delete --all-groups --delete-all-internal-topics
        B --list
    """),
]

#: What differs from one run of Java's tool to the next.
_MASKS = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<UUID>"),
    (r"(?<![\w-])[\w-]{22}(?![\w-])", "<ID>"),
    (r"(deadlineMs|nextAllowedTryMs)=\d+|tries=\d+|at \d{13}|\d+ attempt\(s\)", "<TIME>"),
    (r"(OffsetSpec\$\w+@)[0-9a-f]+", r"\1<HASH>"),
    # Java's immutable sets have another order in each process.
    (r"(Valid states are: ).*", r"\1<STATES>"),
    (r"(Option \"\[\S+\]\" can't be used with option ).*", r"\1<OPTION>"),
    (r"(requires one of the following scenarios: ).*", r"\1<OPTIONS>"),
)


def masked(text: str) -> str:
    """Return a text without what differs from run to run."""
    for pattern, shown in _MASKS:
        text = re.sub(pattern, shown, text)
    return text


def load_recording() -> list[dict[str, Any]]:
    """Return the recorded calls in their order."""
    calls: list[dict[str, Any]] = json.loads(gzip.decompress(RECORDING.read_bytes()))
    return calls


def kctl_words(call: Call, folder: str) -> list[str]:
    """Return the words of our tool."""
    return ["compat", call.tool, *call.arguments(folder)]


def replay(step: dict[str, Any], folder: str) -> Outcome:
    """Run a recorded call against the player of its exchanges."""
    clock = FakeClock()
    host = kctl.connect.Host(Player(clock, step["exchanges"]), clock, FixedEntropy())
    return run_with(host, kctl_words(Call(step["tool"], step["words"]), folder), None)
