"""What the engine asks of its host: clock, files, network and randomness.

Everything outside the process goes through these protocols, so that a test or a simulator can
stand on the other side. `real.py` is the machine, `memory.py` the twin for tests.

Source: D2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from engine.errors import EngineError, StorageError
from engine.limits import FRAME_BYTES_MAX, LISTEN_BACKLOG, UNSENT_BYTES_MAX

if TYPE_CHECKING:
    from engine.host.receive_buffers import ReceiveBuffers
    from engine.host.stream_layer import LayerOf

Buffer: TypeAlias = bytes | bytearray | memoryview


class FileMissing(StorageError):
    """A file or directory that was asked for is not there."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: no such file or directory")
        self.path = path


class FileRefused(StorageError):
    """The host refused an operation on one path (permissions, a folder where a file should be)."""

    def __init__(self, path: str, operation: str, reason: str, errno: int) -> None:
        super().__init__(f"{path}: cannot {operation}: {reason}")
        self.path = path
        self.operation = operation
        self.reason = reason
        self.errno = errno


class LogDirOffline(StorageError):
    """An I/O error that says the whole directory can no longer be trusted (D20)."""

    def __init__(self, path: str, operation: str, reason: str, errno: int) -> None:
        super().__init__(f"{path}: cannot {operation}: {reason}")
        self.path = path
        self.operation = operation
        self.reason = reason
        self.errno = errno


class SideProcessGone(EngineError):
    """A process that was to do something has ended."""

    def __init__(self, pid: int) -> None:
        super().__init__(f"process {pid} has ended")
        self.pid = pid


class Clock(Protocol):
    """Two clocks: timeouts use the monotonic one, record and retention times the wall."""

    def wall_ms(self) -> int:
        """Return milliseconds since the Unix epoch."""
        ...

    def monotonic_ms(self) -> int:
        """Return milliseconds since an arbitrary start; never goes back."""
        ...


class File(Protocol):
    """An open file. Positions are in bytes from the start."""

    path: str

    def size_bytes(self) -> int:
        """Return the size now; a file that another process appends to may grow."""
        ...

    def read_at(self, position: int, length: int) -> bytes:
        """Return up to `length` bytes from `position`; fewer only at the end of the file."""
        ...

    def read_into(self, position: int, buffer: bytearray | memoryview) -> int:
        """Fill `buffer` from `position`; returns the bytes read, short only at the end."""
        ...

    def append(self, buffers: Sequence[Buffer]) -> int:
        """Write all buffers at the end; returns the position of the first byte."""
        ...

    def write_at(self, position: int, buffer: Buffer) -> None:
        """Overwrite bytes in place, growing the file if needed."""
        ...

    def truncate(self, size_bytes: int) -> None:
        """Cut or zero-extend the file to `size_bytes`."""
        ...

    def reserve(self, size_bytes: int) -> None:
        """Take room on the disk up to a size, without changing the file's own.

        `truncate` gives back what is not used.
        """
        ...

    def sync(self) -> None:
        """Make all written bytes durable. Never retried after a failure (D20)."""
        ...

    def fileno(self) -> int | None:
        """Return a descriptor for sendfile, or None where there is none."""
        ...

    def close(self) -> None:
        """Release the file; closing twice is allowed."""
        ...


class DiskSpace(NamedTuple):
    """How large the file system behind a path is, and how much of it this process may still use."""

    total_bytes: int
    usable_bytes: int


class Files(Protocol):
    """A file system. `OSError` is mapped here and nowhere else."""

    def open(self, path: str, *, write: bool = False, create: bool = False) -> File:
        """Open a file, read-only unless `write`; raises FileMissing unless `create`."""
        ...

    def exists(self, path: str) -> bool:
        """Return whether a file or directory is there."""
        ...

    def is_dir(self, path: str) -> bool:
        """Return whether the path is a directory."""
        ...

    def is_link(self, path: str) -> bool:
        """Return whether the path itself is a symbolic link, wherever that leads."""
        ...

    def size_bytes(self, path: str) -> int:
        """Return a file's size without opening it."""
        ...

    def modified_ms(self, path: str) -> int:
        """Return a file's modification time in ms since the Unix epoch."""
        ...

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """Set a file's modification time, in ms since the Unix epoch."""
        ...

    def read_bytes(self, path: str) -> bytes:
        """Return a whole (small) file."""
        ...

    def list_dir(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""
        ...

    def absolute_path(self, path: str) -> str:
        """Return the path from the root, without `.`, `..` and links looked at."""
        ...

    def disk_space(self, path: str) -> DiskSpace:
        """Return the space of the file system that a file or directory lies in."""
        ...

    def make_dir(self, path: str) -> None:
        """Create a directory and its parents; one that exists is fine."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Move a file or directory atomically, replacing a file at the target."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file or an empty directory."""
        ...

    def sync_dir(self, path: str) -> None:
        """Make the names in a directory durable."""
        ...

    def replace_file(self, path: str, content: bytes) -> None:
        """Replace a file durably and atomically.

        Steps: 1. write `path + ".tmp"`, 2. sync it, 3. rename over `path`, 4. sync the folder.
        A crash leaves the old or the new content, never a mix.
        """
        ...


class Entropy(Protocol):
    """The only source of randomness."""

    def random_bytes(self, length: int) -> bytes:
        """Return `length` unpredictable bytes."""
        ...

    def random_below(self, bound: int) -> int:
        """Return an integer in [0, bound)."""
        ...


class FileRegion(NamedTuple):
    """Bytes of an open file that are sent without being read into memory.

    The descriptor must stay open until `Connection.send` has let go of the region: `on_sent`
    tells that to the one who closes files.
    """

    descriptor: int
    position: int
    length: int


SendPart: TypeAlias = bytes | bytearray | memoryview | FileRegion


class PauseReason(IntEnum):
    """Why a connection takes no frames, one bit each: it does when no reason is left."""

    #: Too many of its requests have no response yet.
    SLOTS = 1
    #: Its client has used up a quota, until that is free again.
    QUOTA = 2
    #: Unfinished frames take all the room they may.
    MEMORY = 4
    #: Its encryption is not agreed on yet.
    TLS = 8
    #: It ends behind the responses that are owed.
    CLOSING = 16
    #: Nobody is served yet.
    OPENING = 32
    #: Its host is looked up, or has not answered yet.
    CONNECTING = 64
    #: One of its requests is served in several turns of the loop, and has not had all of them.
    TURNS = 128


class Connection(Protocol):
    """One connection, seen as frames: the length prefix never crosses the port.

    A frame is writable, and valid during `on_frame` only. `on_close` is called once, with why.
    """

    peer: str
    on_frame: Callable[[memoryview], None]
    on_close: Callable[[str], None]

    def send(self, parts: Sequence[SendPart], on_sent: Callable[[], None] | None = None) -> None:
        """Queue one frame; its parts follow each other behind their common length."""
        ...

    def pause(self, reason: PauseReason) -> None:
        """Take no more frames until every reason is gone; what is in flight may still arrive."""
        ...

    def resume(self, reason: PauseReason) -> None:
        """Give up one reason; without others frames are taken, at once those that have arrived."""
        ...

    def close(self, reason: str) -> None:
        """Close now, dropping what cannot be sent at once."""
        ...


class ConnectionLimits(NamedTuple):
    """Bounds of each connection; `idle_ms` 0 never closes an idle one.

    The kernel's buffers are those of accepted connections; below 0 the kernel sizes them itself.
    Beyond `unsent_bytes_max` a connection may have one response in memory; file regions count
    nothing.
    """

    frame_bytes_max: int = FRAME_BYTES_MAX
    idle_ms: int = 600_000
    send_buffer_bytes: int = -1
    receive_buffer_bytes: int = -1
    unsent_bytes_max: int = UNSENT_BYTES_MAX


class ConnectionGate(Protocol):
    """Decides who comes in at a listener, and when. Addresses are numeric, without a port.

    For each arrival: `arrive`, the delay, then as long as there is an `obstacle` the wait for
    `on_room`, then `enter`; `leave` at the end of each connection that has entered.
    """

    #: Set by the listener: tries again after something was changed or has left.
    on_room: Callable[[], None]

    def arrive(self, address: str, now_ms: int) -> int:
        """Note an arrival; returns for how many ms it is throttled."""
        ...

    def obstacle(self) -> str | None:
        """Return why nobody can come in now, None if one more can."""
        ...

    def enter(self, address: str) -> str | None:
        """Count a connection; returns why it is turned away instead, None if it is not."""
        ...

    def leave(self, address: str) -> None:
        """Take note of the end of a connection that has entered."""
        ...


class ListenOptions(NamedTuple):
    """How a listener takes connections.

    `on_refused` is told of a connection that is cut for what its peer does, `on_kept_out` of one
    that is turned away or has to wait; each by the peer and why. `room` is what unfinished frames
    may take, None for that of the network. `layer` makes what lies between bytes and frames.
    """

    gate: ConnectionGate
    on_refused: Callable[[str, str], None]
    on_kept_out: Callable[[str, str], None]
    limits: ConnectionLimits = ConnectionLimits()
    backlog: int = LISTEN_BACKLOG
    room: ReceiveBuffers | None = None
    layer: LayerOf | None = None


class Listener(Protocol):
    """An address that connections are accepted on.

    `limits` may be exchanged: the others hold at once, but the kernel's buffers for new ones.
    """

    limits: ConnectionLimits

    @property
    def port(self) -> int:
        """Return the port, chosen by the host when 0 was asked."""
        ...

    def close_least_recently_used(self, reason: str) -> bool:
        """Close the connection that was silent for longest; False if there is none."""
        ...

    def close(self) -> None:
        """Accept no more; connections that are there stay. Closing twice is allowed."""
        ...


class Network(Protocol):
    """Listening and connecting by host and port."""

    def listen(
        self, host: str, port: int, on_connect: Callable[[Connection], None], options: ListenOptions
    ) -> Listener:
        """Accept connections; the errors are StorageError.

        Up to `options.backlog` wait until they are accepted; the system has a bound of its own.
        """
        ...

    def connect(self, host: str, port: int, *, receive_buffer_bytes: int = -1) -> Connection:
        """Open a connection; frames may be sent at once.

        Every failure arrives by `on_close` on a later turn, that of the look-up of its name too,
        which nobody waits for.
        `receive_buffer_bytes` is the kernel's buffer for what arrives, −1 its own size.
        """
        ...

    def address_of(self, host: str) -> str | None:
        """Return the numeric address of a host, None for one that is not found. May wait."""
        ...


class Timers(Protocol):
    """Work for later, on the one thread that runs the engine."""

    def call_at(self, monotonic_ms: int, callback: Callable[[], None]) -> Callable[[], None]:
        """Run once at that time or soon after it; returns what cancels it."""
        ...

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Run after everything that is due now."""
        ...

    def call_from_thread(self, callback: Callable[[], None]) -> None:
        """The same, from any thread."""
        ...


class Workers(Protocol):
    """Threads on a worker thread, for what would hold it up."""

    def submit(self, name: str, work: Callable[[], None]) -> None:
        """Run `work` on a worker thread, some time; it raises nothing. The name is for people."""
        ...

    def stop(self) -> None:
        """Wait until all that was submitted has run, and end the threads."""
        ...


class SideProcess(Protocol):
    """A process beside this one that does what it is asked, and ends with this one."""

    def ask(self, message: bytes) -> bytes:
        """Send a message and wait for its answer. Raises SideProcessGone."""
        ...

    def close(self) -> None:
        """Let it end, and wait for that. Closing twice is allowed."""
        ...
