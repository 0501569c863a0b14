"""The host's interfaces that the engine uses: clock, files, network, randomness, processes.

Everything outside the process is reached through these protocols, so that a test or a simulator
can take the host's place. `real.py` is the machine, `memory.py` the twin for tests.

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
    """A requested file or directory does not exist."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: no such file or directory")
        self.path = path


class FileRefused(StorageError):
    """The host refused an operation on one path (permissions, a directory in place of a file)."""

    def __init__(self, path: str, operation: str, reason: str, errno: int) -> None:
        super().__init__(f"{path}: cannot {operation}: {reason}")
        self.path = path
        self.operation = operation
        self.reason = reason
        self.errno = errno


class LogDirOffline(StorageError):
    """An I/O error after which the whole directory can no longer be trusted (D20)."""

    def __init__(self, path: str, operation: str, reason: str, errno: int) -> None:
        super().__init__(f"{path}: cannot {operation}: {reason}")
        self.path = path
        self.operation = operation
        self.reason = reason
        self.errno = errno


class SideProcessGone(EngineError):
    """A side process ended before its response."""

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
        """Truncate or zero-extend the file to `size_bytes`."""
        ...

    def reserve(self, size_bytes: int) -> None:
        """Reserve disk space up to a size, without changing the size of the file.

        `truncate` releases the unused part.
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
    """The size of a path's file system, and the bytes that this process may still use."""

    total_bytes: int
    usable_bytes: int


class Files(Protocol):
    """A file system. `OSError` is mapped here and nowhere else."""

    def open(self, path: str, *, write: bool = False, create: bool = False) -> File:
        """Open a file, read-only unless `write`; raises FileMissing unless `create`."""
        ...

    def exists(self, path: str) -> bool:
        """Return True if a file or directory exists at the path."""
        ...

    def is_dir(self, path: str) -> bool:
        """Return True if the path is a directory."""
        ...

    def is_link(self, path: str) -> bool:
        """Return True if the path itself is a symbolic link, even to a missing file."""
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

    def make_private(self, path: str) -> None:
        """Remove the access of other users to a file."""
        ...

    def read_bytes(self, path: str) -> bytes:
        """Return the content of a file, which should be small."""
        ...

    def list_dir(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""
        ...

    def absolute_path(self, path: str) -> str:
        """Return the path from the root, with `.` and `..` resolved and links kept."""
        ...

    def disk_space(self, path: str) -> DiskSpace:
        """Return the space of the file system that a file or directory lies in."""
        ...

    def make_dir(self, path: str) -> None:
        """Create a directory and its parents; existing ones are kept."""
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

    The descriptor must stay open until `Connection.send` has sent the region: `on_sent`
    notifies its owner.
    """

    descriptor: int
    position: int
    length: int


SendPart: TypeAlias = bytes | bytearray | memoryview | FileRegion


class PauseReason(IntEnum):
    """Reasons for a connection to take no frames, one bit each; it takes frames if none is set."""

    #: Too many requests of the connection have no response yet.
    SLOTS = 1
    #: Its client exceeded a quota and is muted for the throttle time.
    QUOTA = 2
    #: Unfinished frames use up their memory bound.
    MEMORY = 4
    #: The TLS handshake is not over yet.
    TLS = 8
    #: The connection closes after the responses that are due.
    CLOSING = 16
    #: The broker serves no connection yet.
    OPENING = 32
    #: The host's look-up or the TCP connect is in progress.
    CONNECTING = 64
    #: One of its requests is served in several turns of the loop, and is not done.
    TURNS = 128
    #: Its client failed to authenticate: the error response is delayed.
    AUTHENTICATION = 256


class Connection(Protocol):
    """A connection that carries frames; their length prefix is not visible here.

    A frame is writable, and valid only during `on_frame`. `on_close` is called once, with the
    reason.
    """

    peer: str
    on_frame: Callable[[memoryview], None]
    on_close: Callable[[str], None]

    def send(self, parts: Sequence[SendPart], on_sent: Callable[[], None] | None = None) -> None:
        """Queue one frame: its parts in order, after their common length.

        `on_sent` is called once the parts are not needed any more: sent, or the connection closed.
        """
        ...

    def pause(self, reason: PauseReason) -> None:
        """Stop taking frames until every reason is removed; frames in flight may still arrive."""
        ...

    def resume(self, reason: PauseReason) -> None:
        """Remove one reason for the pause.

        Once no reason is left, frames are delivered, those received before first.
        """
        ...

    def bound_frames(self, bound: FrameBound | None) -> None:
        """Set a size limit for later frames below that of the limits; None removes it."""
        ...

    def peer_certificate(self) -> bytes | None:
        """Return the certificate that the peer presented, DER; None without one, or without TLS."""
        ...

    def close(self, reason: str) -> None:
        """Close now, dropping unsent frames that the socket does not take at once."""
        ...


class FrameBound(NamedTuple):
    """A size limit for the frames of one connection; `on_larger` is called with a larger size.

    The bytes received until then are dropped, and the connection must be paused or closed.
    """

    bytes_max: int
    on_larger: Callable[[int], None]


class ConnectionLimits(NamedTuple):
    """Limits of each connection; with `idle_ms` 0 an idle one is never closed.

    The buffer sizes are those of the kernel for accepted connections; a negative size leaves
    the choice to the kernel. Above `unsent_bytes_max` a connection may have one more response
    in memory; file regions are not counted.
    """

    frame_bytes_max: int = FRAME_BYTES_MAX
    idle_ms: int = 600_000
    send_buffer_bytes: int = -1
    receive_buffer_bytes: int = -1
    unsent_bytes_max: int = UNSENT_BYTES_MAX


class ConnectionGate(Protocol):
    """Admission of connections at a listener. Addresses are numeric, without a port.

    Per arrival: `arrive`, its delay, a wait for `on_room` while there is an `obstacle`, then
    `enter`; `leave` at the end of each connection that has entered.
    """

    #: Set by the listener: retries after a limit was changed or a connection has left.
    on_room: Callable[[], None]

    def arrive(self, address: str, now_ms: int) -> int:
        """Count an arrival against the rate limits; return how many ms the connection must wait."""
        ...

    def waiting_reason(self) -> str | None:
        """Return why no connection can be admitted now, for the log; None if one more can."""
        ...

    def enter(self, address: str) -> str | None:
        """Count a connection against the limits.

        Return why it is turned away, None if it may enter.
        """
        ...

    def leave(self, address: str) -> None:
        """Record the end of a connection that has entered."""
        ...


class ListenOptions(NamedTuple):
    """Options of a listener.

    `on_refused` is called for a connection that is closed because its peer broke a limit,
    `on_kept_out` for one that is rejected or delayed at its start; both with peer and reason.
    `room` bounds unfinished frames, None shares the bound of the network. `layer` creates the
    layer between bytes and frames.
    """

    gate: ConnectionGate
    on_refused: Callable[[str, str], None]
    on_kept_out: Callable[[str, str], None]
    limits: ConnectionLimits = ConnectionLimits()
    backlog: int = LISTEN_BACKLOG
    room: ReceiveBuffers | None = None
    layer: LayerOf | None = None


class Listener(Protocol):
    """An address that accepts connections.

    `limits` may be replaced: they apply at once, except kernel buffers, which apply to new
    connections.
    """

    limits: ConnectionLimits

    @property
    def port(self) -> int:
        """Return the port; the host chooses it if 0 was requested."""
        ...

    def close_least_recently_used(self, reason: str) -> bool:
        """Close the connection that has been idle longest; False if there is none."""
        ...

    def close(self) -> None:
        """Stop accepting; open connections stay. Closing twice is allowed."""
        ...


class Network(Protocol):
    """Listening and connecting, by host and port."""

    def listen(
        self, host: str, port: int, on_connect: Callable[[Connection], None], options: ListenOptions
    ) -> Listener:
        """Accept connections; raises StorageError.

        Up to `options.backlog` connections wait for acceptance; the system has a bound of its own.
        """
        ...

    def connect(
        self,
        host: str,
        port: int,
        *,
        receive_buffer_bytes: int = -1,
        layer: LayerOf | None = None,
    ) -> Connection:
        """Open a connection; frames may be sent before it is established.

        Every failure, including that of the name look-up, is reported by `on_close` on a later
        turn; the call never blocks. `receive_buffer_bytes` is the kernel's receive buffer, −1 for
        the system's default. `layer` creates the layer between bytes and frames; in memory there is
        none.
        """
        ...

    def address_of(self, host: str) -> str | None:
        """Return the numeric address of a host, or None if it is not found. May block."""
        ...


class Timers(Protocol):
    """Callbacks for later, on the one engine thread."""

    def call_at(self, monotonic_ms: int, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` once, at or soon after a monotonic time.

        Return a function that cancels it.
        """
        ...

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call `callback` after everything that is due now."""
        ...

    def call_from_thread(self, callback: Callable[[], None]) -> None:
        """Do the same as `call_soon`, from any thread."""
        ...


class Workers(Protocol):
    """Worker threads, for work that would block the loop."""

    def submit(self, name: str, work: Callable[[], None]) -> None:
        """Run `work` on a worker thread; it must not raise, because nothing would see the error.

        The name is for diagnostics.
        """
        ...

    def stop(self) -> None:
        """Wait until all submitted work has run, and end the threads."""
        ...


class SideProcess(Protocol):
    """A child process that responds to messages, and ends with this process."""

    def request(self, message: bytes) -> bytes:
        """Send a message to the process and wait for its response. Raises SideProcessGone."""
        ...

    def close(self) -> None:
        """End the process and wait for it. Closing twice is allowed."""
        ...
