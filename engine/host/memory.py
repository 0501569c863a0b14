"""In-memory twin of the machine for tests and simulation: a manual clock, a disk with power cuts.

A disk keeps two images. Reads see the live one; a power cut leaves the durable one:

```
file content    durable after File.sync()
name in a dir   durable after Files.sync_dir() of that directory
```

Both rules are stricter than common file systems on purpose: data that survives here survives there.
Changes that are not durable are kept in a journal, so that a crash may keep any prefix of it and
tear the write after the prefix (`MemoryFiles.after_crash`).
"""

from __future__ import annotations

import errno
import posixpath
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import NamedTuple

from engine.host.memory_image import (
    Content,
    Folder,
    NameChange,
    Node,
    Renaming,
    Write,
    build_crash_image,
    draw_kept_changes,
    flipped_paths,
    list_files,
    list_unsynced_changes,
)
from engine.host.os_errors import storage_error
from engine.host.ports import Buffer, Clock, DiskSpace, File, LogDirOffline
from engine.host.replace import replace_durably

#: How many split paths are cached; any number works.
_PATHS_KEPT = 4096


class ManualClock:
    """A clock that only `advance` and `jump_wall` move."""

    def __init__(self, *, wall_ms: int = 1_700_000_000_000, monotonic_ms: int = 0) -> None:
        self._wall_ms = wall_ms
        self._monotonic_ms = monotonic_ms

    def wall_ms(self) -> int:
        """Return milliseconds since the Unix epoch."""
        return self._wall_ms

    def monotonic_ms(self) -> int:
        """Return milliseconds since an arbitrary start."""
        return self._monotonic_ms

    def advance(self, duration_ms: int) -> None:
        """Advance the wall clock and the monotonic clock by `duration_ms`."""
        assert duration_ms >= 0
        self._wall_ms += duration_ms
        self._monotonic_ms += duration_ms

    def jump_wall(self, duration_ms: int) -> None:
        """Move the wall clock alone, forward or back, as an operator or NTP does."""
        self._wall_ms += duration_ms


class SeededEntropy:
    """Deterministic randomness from a seed; never for secrets."""

    def __init__(self, seed: int = 0) -> None:
        self._source = random.Random(seed)

    def random_bytes(self, length: int) -> bytes:
        """Return `length` bytes."""
        return self._source.randbytes(length)

    def random_below(self, bound: int) -> int:
        """Return an integer in [0, bound)."""
        return self._source.randrange(bound)


class MachineStopped(BaseException):
    """The power was cut before this operation.

    Not an Exception: code that catches storage errors must not survive a power cut.
    """

    def __init__(self, operation: int) -> None:
        super().__init__(f"power cut at operation {operation}")
        self.operation = operation


class _Failure(NamedTuple):
    """A failure injected into operations of one kind."""

    operation: str
    path_start: str
    path_end: str
    code: int
    skip: int
    times: int


class MemoryFile:
    """An open file of a `MemoryFiles`."""

    __slots__ = ("_content", "_disk", "_sync_failed", "_writable", "path", "reserved_bytes")

    def __init__(self, disk: MemoryFiles, path: str, content: Content, *, writable: bool) -> None:
        """Open `content`; `MemoryFiles.open` calls this."""
        self.path = path
        self._disk = disk
        self._content = content
        self._writable = writable
        #: Whether a sync of this open file has failed: later ones fail too.
        self._sync_failed = False
        #: End of the reserved space in bytes, 0 without a reservation.
        self.reserved_bytes = 0

    def size_bytes(self) -> int:
        """Return the present size of the file."""
        self._disk.access("stat", self.path)
        return len(self._content.live)

    def read_at(self, position: int, length: int) -> bytes:
        """Return up to `length` bytes from `position`; fewer only at the end of the file."""
        assert position >= 0
        self._disk.access("read", self.path)
        content = self._content
        data = bytes(memoryview(content.live)[position : position + max(length, 0)])
        return data if not content.flipped else self._disk.as_read(content, position, data)

    def peek(self) -> bytes:
        """Return the content that a read would find, also while reads fail.

        For an observer outside of the machine: no injected failure is used up.
        """
        content, data = self._content, bytes(self._content.live)
        return data if not content.flipped else self._disk.as_read(content, 0, data)

    def read_into(self, position: int, buffer: bytearray | memoryview) -> int:
        """Fill `buffer` from `position`; returns the bytes read, short only at the end."""
        assert position >= 0
        self._disk.access("read", self.path)
        data = memoryview(self._content.live)[position : position + len(buffer)]
        size = len(data)
        if self._content.flipped:
            data = memoryview(self._disk.as_read(self._content, position, bytes(data)))
        buffer[:size] = data
        return size

    def append(self, buffers: Sequence[Buffer]) -> int:
        """Write all buffers at the end; returns the position of the first byte."""
        position = len(self._content.live)
        self._write("write", position, b"".join(buffers))
        return position

    def write_at(self, position: int, buffer: Buffer) -> None:
        """Overwrite bytes in place, growing the file if needed."""
        assert position >= 0
        self._write("write", position, bytes(buffer))

    def truncate(self, size_bytes: int) -> None:
        """Truncate or zero-extend the file to `size_bytes`."""
        self._write("truncate", size_bytes, None)
        self.reserved_bytes = 0

    def reserve(self, size_bytes: int) -> None:
        """Record the reserved size; memory needs no reservation."""
        self._disk.access("reserve room", self.path)
        self.reserved_bytes = size_bytes

    def sync(self) -> None:
        """Make all written bytes durable; after one failure every call fails (L9).

        A failed sync loses the unsynced bytes for good, like a kernel that drops its dirty pages:
        a retry that claims success shows as data loss after the next crash.
        """
        if self._sync_failed:
            raise LogDirOffline(self.path, "sync", "an earlier sync failed", errno.EIO)
        try:
            self._disk.act("sync", self.path)
        except LogDirOffline:
            self._sync_failed = True
            self._disk.has_dropped_writes |= bool(self._content.unsynced)
            self._content.unsynced.clear()
            raise
        self._content.sync()

    def fileno(self) -> int | None:
        """Return None: there is no descriptor for this file."""
        return None

    def close(self) -> None:
        """Release the file; closing twice is allowed."""

    def _write(self, operation: str, position: int, content: bytes | None) -> None:
        """Write bytes at a position, or set the size if `content` is None; raises if read-only."""
        if not self._writable:
            raise storage_error(errno.EPERM, self.path, operation)
        order = self._disk.act(operation, self.path)
        self._content.apply_change(Write(order, position, content), self._disk.now_ms())


class MemoryFiles:
    """A file system in memory, with a journal of the changes that are not durable yet.

    `operations` counts the changing operations so far: run once to learn the count, then
    once for each n with `stop_at(n)` to cut the power before operation n. `clock` gives the
    modification times (0 without one).
    """

    def __init__(self, *, clock: Clock | None = None) -> None:
        """Create with an empty root folder."""
        self.operations = 0
        #: Whether a failed sync has lost writes that reads still return.
        self.has_dropped_writes = False
        #: The size that `disk_space` returns; no write fails for lack of space.
        self.total_bytes = 1 << 40
        self._clock = clock
        self._root = Folder()
        #: Renames that are not durable yet, by the number of their operation: a crash may undo
        #: them.
        self._renamings: dict[int, Renaming] = {}
        #: Number of the operation before which the power is cut, None without.
        self._stop_at: int | None = None
        #: Whether the power was cut: every operation fails until a restart.
        self._stopped = False
        #: Errors that tests have planned for coming operations.
        self._failures: list[_Failure] = []
        #: Whether a test reads the files: no planned errors, and no bit flips in what is read.
        self._is_inspected = False

    # Controls for tests

    def stop_at(self, operation: int) -> None:
        """Cut the power before the changing operation with this number (counted from 0)."""
        self._stop_at = operation

    @property
    def has_stopped(self) -> bool:
        """Return True if the power is cut; every operation then raises MachineStopped."""
        return self._stopped

    def go_on(self) -> None:
        """Restore the power with nothing lost, or cancel a cut that has not happened yet."""
        self._stop_at, self._stopped = None, False

    def fail(
        self,
        operation: str,
        code: int,
        *,
        path_start: str = "",
        path_end: str = "",
        skip: int = 0,
        times: int = 1,
    ) -> None:
        """Fail the next `times` operations of this kind with errno `code`.

        `operation` is the word in the error message: open, create, stat, read, write, truncate,
        sync, rename, remove, list. Only paths that begin with `path_start` and end with `path_end`
        are affected; the first `skip` of them still succeed.
        """
        self._failures.append(_Failure(operation, path_start, path_end, code, skip, times))

    def cancel_failures(self) -> None:
        """Cancel every injected failure that has not happened yet."""
        self._failures.clear()

    @contextmanager
    def suspend_failures(self) -> Iterator[None]:
        """Suspend failures and flipped bits inside the block, for a test that inspects the disk."""
        failures, self._failures = self._failures, []
        was_inspected, self._is_inspected = self._is_inspected, True
        try:
            yield
        finally:
            self._failures, self._is_inspected = failures, was_inspected

    def flip(self, path: str, position: int, bits: int) -> None:
        """Make reads of a file return the set bits of `bits` inverted in the byte at a position.

        The byte reads correctly once it is written again.
        """
        self._find_file(path).flipped[position] = bits

    def flipped_paths(self) -> list[str]:
        """Return the paths of all files that have bits which are read wrongly."""
        return flipped_paths(self._root)

    def flip_back(self) -> None:
        """Make reads of all files return the bytes that were written."""
        for content in list_files(self._root):
            content.flipped.clear()

    def as_read(self, content: Content, position: int, data: bytes) -> bytes:
        """Return bytes as a read returns them; inside `suspend_failures` as they were written."""
        return data if self._is_inspected else content.flip_bits(position, data)

    def unsynced_changes(self) -> int:
        """Return the number of changes of content and names that a crash now would lose."""
        return len(self._journal())

    def after_crash(self, *, kept_changes: int = 0, torn_bytes: int = 0) -> MemoryFiles:
        """Return the disk as it is found after a power cut.

        It has the durable image, the first `kept_changes` of the unsynced changes in the order they
        were made, and `torn_bytes` of the next write. 0 is the strictest disk; `unsynced_changes()`
        is a killed process on a machine that stayed up.
        """
        changes = self._journal()
        kept = changes[:kept_changes]
        for change in changes[kept_changes : kept_changes + 1]:
            if isinstance(change, Write) and change.content is not None:
                kept.append(change._replace(content=change.content[:torn_bytes]))
        return self._image_with(kept)

    def after_scattered_crash(self, draw: random.Random) -> MemoryFiles:
        """Return the disk after a crash that kept unsynced writes in any order.

        `draw_kept_changes` has the rules of what is kept.
        """
        return self._image_with(draw_kept_changes(self._root, self._journal(), draw))

    def _image_with(self, kept: list[Write | Renaming]) -> MemoryFiles:
        """Return the disk after a crash that kept these unsynced changes and all synced ones."""
        disk = MemoryFiles(clock=self._clock)
        disk._root = build_crash_image(self._root, kept)
        return disk

    def sync_all(self) -> None:
        """Make the live image durable, as the state at the start of a test."""
        for renaming in self._renamings.values():
            self._become_durable(renaming)
        self._renamings.clear()
        for content in list_files(self._root):
            content.sync()

    # Calls of open files

    def act(self, operation: str, path: str) -> int:
        """Count a changing operation, and apply injected stops and failures; returns its number."""
        self._check_power()
        if self.operations == self._stop_at:
            self._stopped = True
            self._check_power()
        self._check_failures(operation, path)
        number = self.operations
        self.operations += 1
        return number

    def access(self, operation: str, path: str) -> None:
        """Apply injected failures to an operation that changes nothing."""
        self._check_power()
        if self._failures:
            self._check_failures(operation, path)

    def now_ms(self) -> int:
        """Return the wall time for modification times of files, 0 without a clock."""
        return self._clock.wall_ms() if self._clock else 0

    # Files

    def open(self, path: str, *, write: bool = False, create: bool = False) -> File:
        """Open a file, read-only unless `write`; raises FileMissing unless `create`."""
        self.access("open", path)
        folder, name = self._find_parent(path, "open")
        node = folder.live.get(name) if name else folder
        if isinstance(node, Folder):
            raise storage_error(errno.EISDIR, path, "open")
        if node is None:
            if not create:
                raise storage_error(errno.ENOENT, path, "open")
            order = self.act("create", path)
            node = Content()
            node.modified_ms = self.now_ms()
            self._change_names(order, (NameChange(folder, name, node),))
        return MemoryFile(self, path, node, writable=write)

    def exists(self, path: str) -> bool:
        """Return True if a file or directory is at this path."""
        self._check_power()
        return self._find(path) is not None

    def is_dir(self, path: str) -> bool:
        """Return True if the path is that of a directory."""
        self._check_power()
        return isinstance(self._find(path), Folder)

    def is_link(self, path: str) -> bool:
        """Return False: this file system has no symbolic links."""
        self._check_power()
        return False

    def size_bytes(self, path: str) -> int:
        """Return a file's size without opening it."""
        return len(self._find_file(path).live)

    def modified_ms(self, path: str) -> int:
        """Return a file's modification time in ms since the Unix epoch."""
        return self._find_file(path).modified_ms

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """Set a file's modification time, in ms since the Unix epoch."""
        self._find_file(path).modified_ms = modified_ms

    def make_private(self, path: str) -> None:
        """Do nothing but require the file: this file system has no other users."""
        self._find_file(path)

    def read_bytes(self, path: str) -> bytes:
        """Return a whole (small) file."""
        handle = self.open(path)
        return handle.read_at(0, handle.size_bytes())

    def list_dir(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""
        self.access("list", path)
        return sorted(self._find_folder(path, "list").live)

    def absolute_path(self, path: str) -> str:
        """Return the normalised path from the root."""
        return posixpath.normpath(posixpath.join("/", path))

    def disk_space(self, path: str) -> DiskSpace:
        """Return the space of the file system that a file or directory lies in."""
        self.access("stat", path)
        if self._find(path) is None:
            raise storage_error(errno.ENOENT, path, "stat")
        used_bytes = sum(len(content.live) for content in list_files(self._root))
        return DiskSpace(self.total_bytes, max(0, self.total_bytes - used_bytes))

    def make_dir(self, path: str) -> None:
        """Create a directory and its parents, unless they exist."""
        folder = self._root
        for name in _parts(path):
            node = folder.live.get(name)
            if isinstance(node, Content):
                raise storage_error(errno.EEXIST, path, "create")
            if node is None:
                order = self.act("create", path)
                node = Folder()
                self._change_names(order, (NameChange(folder, name, node),))
            folder = node

    def rename(self, source: str, target: str) -> None:
        """Move a file or directory atomically, replacing a file at the target."""
        operation = f"rename to {target}"
        source_folder, source_name = self._find_parent(source, operation)
        target_folder, target_name = self._find_parent(target, operation)
        node = source_folder.live.get(source_name)
        if node is None:
            raise storage_error(errno.ENOENT, source, operation)
        replaced = target_folder.live.get(target_name)
        if isinstance(replaced, Folder) and replaced is not node:
            if not isinstance(node, Folder):
                raise storage_error(errno.EISDIR, source, operation)
            if replaced.live:
                raise storage_error(errno.ENOTEMPTY, source, operation)
        elif isinstance(replaced, Content) and isinstance(node, Folder):
            raise storage_error(errno.ENOTDIR, source, operation)
        order = self.act("rename", source)
        if replaced is not node:
            gone = NameChange(source_folder, source_name, None)
            self._change_names(order, (gone, NameChange(target_folder, target_name, node)))

    def remove(self, path: str) -> None:
        """Remove a file or an empty directory."""
        folder, name = self._find_parent(path, "remove")
        node = folder.live.get(name)
        if node is None:
            raise storage_error(errno.ENOENT, path, "remove")
        if isinstance(node, Folder) and node.live:
            raise storage_error(errno.ENOTEMPTY, path, "remove")
        order = self.act("remove", path)
        self._change_names(order, (NameChange(folder, name, None),))

    def sync_dir(self, path: str) -> None:
        """Make the names in a directory durable.

        A rename between two directories becomes durable with either, as in one journal entry.
        """
        folder = self._find_folder(path, "sync")
        self.act("sync", path)
        for renaming in list(folder.unsynced.values()):
            self._become_durable(renaming)
            del self._renamings[renaming.order]

    def replace_file(self, path: str, content: bytes) -> None:
        """Replace a file durably and atomically; `replace.py` has the steps."""
        replace_durably(self, path, content)

    def _change_names(self, order: int, changes: tuple[NameChange, ...]) -> None:
        """Apply changes of names as one; they are durable once their folders are synced."""
        renaming = Renaming(order, changes)
        for change in changes:
            change.apply_to(change.folder.live)
            change.folder.unsynced[order] = renaming
        self._renamings[order] = renaming

    def _become_durable(self, renaming: Renaming) -> None:
        """Make a renaming durable, in both folders if there are two."""
        renaming.become_durable()
        for change in renaming.changes:
            change.folder.unsynced.pop(renaming.order, None)

    def _check_power(self) -> None:
        """Raise MachineStopped if the disk has stopped at an operation."""
        if self._stopped:
            raise MachineStopped(self.operations)

    def _check_failures(self, operation: str, path: str) -> None:
        """Raise the injected failure of an operation and path, if one is due."""
        for index, failure in enumerate(self._failures):
            if failure.operation != operation:
                continue
            if not path.startswith(failure.path_start) or not path.endswith(failure.path_end):
                continue
            if failure.skip:
                self._failures[index] = failure._replace(skip=failure.skip - 1)
                continue
            if failure.times > 1:
                self._failures[index] = failure._replace(times=failure.times - 1)
            else:
                del self._failures[index]
            raise storage_error(failure.code, path, operation)

    def _find(self, path: str) -> Node | None:
        """Return the file or folder at a path, None if nothing is there."""
        return self._find_parts(_parts(path))

    def _find_parts(self, parts: Sequence[str]) -> Node | None:
        """Return the file or folder at a path given as its names, None if nothing is there."""
        node: Node = self._root
        for name in parts:
            child = node.live.get(name) if isinstance(node, Folder) else None
            if child is None:
                return None
            node = child
        return node

    def _find_file(self, path: str) -> Content:
        """Return the file at a path; raises ENOENT or EISDIR as a StorageError."""
        self.access("stat", path)
        node = self._find(path)
        if node is None:
            raise storage_error(errno.ENOENT, path, "stat")
        if isinstance(node, Folder):
            raise storage_error(errno.EISDIR, path, "stat")
        return node

    def _find_folder(self, path: str, operation: str) -> Folder:
        """Return the folder at a path; raises ENOENT or ENOTDIR as a StorageError."""
        node = self._find(path)
        if node is None:
            raise storage_error(errno.ENOENT, path, operation)
        if isinstance(node, Content):
            raise storage_error(errno.ENOTDIR, path, operation)
        return node

    def _find_parent(self, path: str, operation: str) -> tuple[Folder, str]:
        """Return the folder of a path and the name in it; raises unless the folder exists."""
        self._check_power()
        parts = _parts(path)
        if not parts:
            return self._root, ""
        folder = self._find_parts(parts[:-1])
        if isinstance(folder, Folder):
            return folder, parts[-1]
        return self._find_folder("/".join(parts[:-1]), operation), parts[-1]

    def _journal(self) -> list[Write | Renaming]:
        """Return the changes that a crash may lose, in the order in which they were made."""
        return list_unsynced_changes(self._root, [*self._renamings.values()])


@lru_cache(maxsize=_PATHS_KEPT)
def _parts(path: str) -> tuple[str, ...]:
    """Return the names of a path from the root on, with `.` and `..` resolved."""
    return tuple(part for part in posixpath.normpath(path).split("/") if part not in ("", "."))
