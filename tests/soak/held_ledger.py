"""What the processes of a cluster hold, from the outside: each soak ends with nothing too much.

| held | must be |
|---|---|
| a file that is deleted, or renamed to be (`.deleted`) | open nowhere |
| any other file of a log directory | open once in a process, at most |
| a socket | to somebody who is there: its other end is established too |
| all other descriptors | as many as when the broker began, of each kind |
| `.cleaned`, `.swap`, `.tmp` and the like | in no directory: each is the middle of a change |
| child processes | none but those of the beginning |
| memory | within a bound |

The files of live segments and the sockets between brokers are not counted: partitions and leaders
come and go in a soak. A leak of either is seen by the second and the third row. What takes time by
itself (a process that is kept for a next cleaning, a connection that just ends) is waited for.

Read from /proc, without a line of the engine.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

#: A cleaner's process is kept for a minute after its last cleaning.
DEADLINE_S = 90.0
RSS_MIB_MAX = 256
_POLL_S = 0.25
#: Held by a cluster's process while it starts, shortly beyond its being ready.
_START_LOCK = "/cluster.start"
_GONE = (" (deleted)", ".deleted")
_HALF_DONE = frozenset((".cleaned", ".swap", ".tmp", ".part", ".new"))
_ESTABLISHED = "01"
_LISTENING = "0A"
_SOCKET = re.compile(r"socket:\[(\d+)\]")
_KIND = re.compile(r"(anon_inode:\[?[a-z_]+|[a-z]+(?=:\[)|/dev/[a-z]+)")


class _Socket(NamedTuple):
    """A line of /proc/net/tcp; both ends as it writes them."""

    here: str
    there: str
    state: str


class HeldLedger:
    """What the processes of one cluster held when it began, by name."""

    def __init__(self, log_dirs: Iterable[Path], *, rss_mib_max: int = RSS_MIB_MAX) -> None:
        self._log_dirs = [path.resolve() for path in log_dirs]
        self._rss_mib_max = rss_mib_max
        self._began: dict[str, Counter[str]] = {}
        self._children: dict[str, set[str]] = {}

    def begin(self, pids: Mapping[str, int]) -> None:
        """Take down what processes hold once they have started, under names that outlive them."""
        for name, pid in pids.items():
            self._began[name] = self._settled(pid)
            self._children[name] = set(children(pid))

    def _settled(self, pid: int) -> Counter[str]:
        """Return the descriptors of a process that holds no lock of its start any more."""
        before: Counter[str] | None = None
        while True:
            now = _other_descriptors(self._log_dirs, _links(pid))
            if now == before and not any(name.endswith(_START_LOCK) for name in now):
                return now
            before = now
            time.sleep(_POLL_S)

    def check(self, pids: Mapping[str, int], deadline_s: float = DEADLINE_S) -> None:
        """Return once nothing is held too much; an AssertionError says what is, after a while."""
        end_s = time.monotonic() + deadline_s
        while found := self.findings(pids):
            assert time.monotonic() < end_s, "\n".join(found)
            time.sleep(_POLL_S)

    def findings(self, pids: Mapping[str, int]) -> list[str]:
        """Return what is held too much, by the processes that have these names now."""
        found = [f"half done: {path}" for path in half_done(self._log_dirs)]
        for name, pid in pids.items():
            found += [f"{name} ({pid}): {each}" for each in self._held_by(name, pid)]
        return found

    def _held_by(self, name: str, pid: int) -> list[str]:
        links = _links(pid)
        files = Counter(link for link in links if _is_within(link, self._log_dirs))
        found = [f"open, and deleted: {link}" for link in files if link.endswith(_GONE)]
        found += [f"open {count} times: {link}" for link, count in files.items() if count > 1]
        found += [f"a socket to nobody: {socket}" for socket in sockets_to_nobody(links)]
        others, began = _other_descriptors(self._log_dirs, links), self._began.get(name)
        if began is not None and others != began:
            found.append(f"descriptors at first {dict(began)}, now {dict(others)}")
        began_children = self._children.get(name, set())
        found += [f"a child: {child}" for child in children(pid) if child not in began_children]
        rss_mib = rss_kib(pid) >> 10
        if rss_mib > self._rss_mib_max:
            found.append(f"{rss_mib} MiB of memory, {self._rss_mib_max} at most")
        return found


def rss_kib(pid: int) -> int:
    """Return the resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError(f"process {pid} has ended")


def children(pid: int) -> list[str]:
    """Return the processes that a process has begun and that have not ended."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            try:
                words = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            found.append(f"{child} {b' '.join(words).decode(errors='replace')[:120]}")
    return found


def half_done(log_dirs: Iterable[Path]) -> list[Path]:
    """Return the files of log directories that are the middle of a change."""
    return [
        Path(folder, name)
        for log_dir in log_dirs
        for folder, _, names in os.walk(log_dir)
        for name in names
        if os.path.splitext(name)[1] in _HALF_DONE
    ]


def sockets_to_nobody(links: Iterable[str]) -> list[str]:
    """Return the connected sockets among descriptors whose other end is not there any more."""
    numbers = [match[1] for link in links if (match := _SOCKET.fullmatch(link))]
    sockets = _sockets()
    ends = {
        (socket.here, socket.there) for socket in sockets.values() if socket.state == _ESTABLISHED
    }
    return [
        f"{socket.here} to {socket.there}, state {socket.state}"
        for number in numbers
        if (socket := sockets.get(number)) is not None
        and socket.state != _LISTENING
        and (socket.there, socket.here) not in ends
    ]


def _links(pid: int) -> list[str]:
    """Return where the descriptors of a process lead."""
    found = []
    for descriptor in os.listdir(f"/proc/{pid}/fd"):
        try:
            found.append(os.readlink(f"/proc/{pid}/fd/{descriptor}"))
        except FileNotFoundError:
            continue
    return found


def _is_within(link: str, log_dirs: Sequence[Path]) -> bool:
    return any(link.startswith(f"{log_dir}/") for log_dir in log_dirs)


def _other_descriptors(log_dirs: Sequence[Path], links: Iterable[str]) -> Counter[str]:
    """Count descriptors by their kind, but for those that have a row of their own."""
    sockets = _sockets()
    return Counter(
        kind[0] if (kind := _KIND.match(link)) else link
        for link in links
        if not _is_within(link, log_dirs)
        and not ((number := _SOCKET.fullmatch(link)) and number[1] in sockets)
    )


def _sockets() -> dict[str, _Socket]:
    """Return the connections of this machine over IPv4, by the number that descriptors show."""
    found = {}
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        found[words[9]] = _Socket(words[1], words[2], words[3])
    return found
