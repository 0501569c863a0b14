r"""Pictures of what kctl prints, for the README and the guides: docs/images/*.svg.

    python -m tools.pictures

Starts an embedded cluster, runs the commands on a terminal and draws their output. Topics, records
and times of records are fixed; what still differs from run to run is replaced, so that a second
run writes the same bytes. The pictures of `screen_pictures` need no cluster.

| in | becomes |
|---|---|
| a time | the start of 2026 |
| a topic's id | one id for all |

Differs: rich's own template of an SVG loads a font from the network; this one has the reader's.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from tools.screen_pictures import screen_pictures

IMAGES = Path(__file__).parent.parent / "docs" / "images"
_COLUMNS, _LINES = 110, 50
# Of most monospaced fonts: columns stay in line in viewers that do not stretch texts.
_ASPECT_RATIO = 0.6
_UNDER_REPLICATED_SECONDS = 60
_START_OF_2026_MS = 1_767_225_600_000
_MASKS = (
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "2026-01-01T00:00:00.000Z"),
    (r"\bid [\w-]{22}", "id Zq3vT0kXQ5eWmN7bJ2hRcA"),
)
_TEMPLATE = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
  font-family: monospace; font-size: {char_height}px; line-height: {line_height}px;
}}
.{unique_id}-title {{ font-family: sans-serif; font-size: 18px; font-weight: bold; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


class Picture(NamedTuple):
    """A command, the exit code that it ends with, and the width of its terminal."""

    name: str
    command: str
    code: int = 0
    columns: int = _COLUMNS


TOPIC = Picture("topics-describe", "topics describe clicks --size --offsets")
PLAN = Picture("reassign-plan", "reassign plan --add-broker 4 --changes --throttle 2MB")
LAG = Picture("groups-lag", "groups lag billing")
CHECK = Picture("check", "check", code=4, columns=120)
# Two rows of it are wide: a narrower terminal would break their lines.
PARTITION = Picture("explain-partition", "explain partition orders:0", columns=146)


class Kctl:
    """Runs kctl with a folder of its own for clusters and contexts."""

    def __init__(self, home: Path) -> None:
        """Leave out what the caller's environment says about clusters and colours."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith("KCTL_")}
        for name in ("NO_COLOR", "COLUMNS", "LINES"):
            kept.pop(name, None)
        self._environment = {
            **kept,
            "TERM": "xterm-256color",
            "XDG_DATA_HOME": str(home / "data"),
            "XDG_CONFIG_HOME": str(home / "config"),
        }
        self._program = str(Path(sys.executable).parent / "kctl")

    def run(self, command: str, stdin: str = "") -> str:
        """Return what a command writes to stdout; raise CalledProcessError where it fails."""
        return subprocess.run(
            [self._program, *shlex.split(command)],
            env=self._environment,
            input=stdin,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout

    def on_terminal(self, picture: Picture) -> str:
        """Return what a command writes to a terminal, stderr too, with its escape sequences."""
        ours, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", _LINES, picture.columns, 0, 0))
        words = [self._program, *shlex.split(picture.command)]
        process = subprocess.Popen(
            words, env=self._environment, stdin=subprocess.DEVNULL, stdout=its, stderr=its
        )
        os.close(its)
        written = b"".join(_read_all(ours))
        os.close(ours)
        if process.wait() != picture.code:
            raise subprocess.CalledProcessError(process.returncode, words, written)
        return written.decode().replace("\r\n", "\n")


def _read_all(terminal: int) -> Iterator[bytes]:
    # Linux answers the read behind the last byte of a closed terminal with an error.
    with contextlib.suppress(OSError):
        while data := os.read(terminal, 65536):
            yield data


def drawn(picture: Picture, output: str) -> str:
    """Return the output of a command as SVG."""
    for pattern, instead in _MASKS:
        output = re.sub(pattern, instead, output)
    console = Console(
        file=io.StringIO(), record=True, width=picture.columns, force_terminal=True, no_color=False
    )
    console.print(Text.from_ansi(output.rstrip()), highlight=False)
    svg = console.export_svg(
        title=f"kctl {picture.command}",
        code_format=_TEMPLATE,
        font_aspect_ratio=_ASPECT_RATIO,
        unique_id=picture.name,
    )
    return "".join(f"{line.rstrip()}\n" for line in svg.splitlines() if line.strip())


def _records(counts: dict[int, int]) -> str:
    """Return so many records for each partition, as rows of `kctl consume -o ndjson`."""
    return "".join(
        json.dumps(
            {
                "partition": partition,
                "timestamp": _START_OF_2026_MS + number,
                "key": f"user-{number % 7}",
                "value": f"click {number:0990}",
            }
        )
        + "\n"
        for partition, count in counts.items()
        for number in range(count)
    )


def _produce(kctl: Kctl, topic: str, counts: dict[int, int]) -> None:
    kctl.run(f"produce {topic} --input ndjson --keep-partitions", _records(counts))


def _await_under_replicated(kctl: Kctl, count: int) -> None:
    deadline = time.monotonic() + _UNDER_REPLICATED_SECONDS
    while True:
        topics = json.loads(kctl.run("topics describe --under-replicated -o json"))
        if sum(len(topic["partitions"]) for topic in topics) == count:
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"not {count} partitions under-replicated")


def outputs(kctl: Kctl) -> Iterator[tuple[Picture, str]]:
    """Yield each picture with the output of its command, on a cluster that is started here.

    Each comes at its time in one story: a broker is added, a group falls behind, a broker is cut
    off from the leaders.
    """
    kctl.run(
        "cluster start --brokers 3 --racks a,b,c --port 0 --set replica.lag.time.max.ms=3000"
        " --set offsets.topic.num.partitions=1 --set offsets.topic.replication.factor=1"
    )
    keep = "-c retention.ms=-1"
    kctl.run(f"topics create clicks --replica-assignment 1:2,2:3,3:1,1:3,2:1,3:2 {keep}")
    _produce(kctl, "clicks", {0: 2900, 1: 1040, 2: 1210, 3: 980, 4: 1100, 5: 2700})
    yield TOPIC, kctl.on_terminal(TOPIC)

    kctl.run("cluster add")
    yield PLAN, kctl.on_terminal(PLAN)
    kctl.run("topics delete clicks -y")

    kctl.run(f"topics create orders --replica-assignment 1:2:3,2:1:3,1:2:3 {keep}")
    _produce(kctl, "orders", {0: 900, 1: 870, 2: 910})
    for partition, offset in enumerate((400, 870, 655)):
        kctl.run(
            f"groups reset-offsets billing --topic orders:{partition}"
            f" --to-offset {offset} --execute"
        )
    yield LAG, kctl.on_terminal(LAG)

    kctl.run("cluster partition 1,2,4 3")
    _produce(kctl, "orders", {0: 500, 1: 500, 2: 500})
    _await_under_replicated(kctl, 3)
    yield CHECK, kctl.on_terminal(CHECK)
    yield PARTITION, kctl.on_terminal(PARTITION)


def main() -> int:
    """Write all pictures."""
    IMAGES.mkdir(exist_ok=True)
    for name, svg in screen_pictures().items():
        (IMAGES / f"{name}.svg").write_text(svg, "utf-8")
    with tempfile.TemporaryDirectory() as folder:
        kctl = Kctl(Path(folder))
        try:
            for picture, output in outputs(kctl):
                (IMAGES / f"{picture.name}.svg").write_text(drawn(picture, output), "utf-8")
        finally:
            kctl.run("cluster destroy -y")
    return 0


if __name__ == "__main__":
    sys.exit(main())
