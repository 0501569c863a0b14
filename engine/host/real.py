"""The machine itself: its clocks, its file system, its randomness.

Imported only by code that wires a process together; all other code uses `ports.py`.
Every `OSError` is converted here, by `os_errors.py`.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.errors import StorageError
from engine.host.os_errors import storage_error
from engine.host.replace import replace_durably
from engine.host.reserve import reserve_blocks
from engine.limits import IOV_BUFFERS_MAX, UNCHECKED_READ_BYTES_MAX

if TYPE_CHECKING:
    from engine.host.ports import Buffer, DiskSpace, File

_FILE_MODE = 0o644
_PRIVATE_MODE = 0o600


class RealClock:
    """The clocks of this machine."""

    def wall_ms(self) -> int:
        """Return milliseconds since the Unix epoch."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        """Return milliseconds since an arbitrary start; never goes back."""
        return time.monotonic_ns() // 1_000_000


def pause_ms(duration_ms: int) -> None:
    """Sleep for `duration_ms`; this blocks the calling thread."""
    time.sleep(duration_ms / 1000)


#: Returns nanoseconds since an arbitrary start, to measure work by.
work_ns = time.perf_counter_ns


class RealEntropy:
    """Randomness from the operating system."""

    def random_bytes(self, length: int) -> bytes:
        """Return `length` unpredictable bytes."""
        return os.urandom(length)

    def random_below(self, bound: int) -> int:
        """Return an integer in [0, bound), each equally likely."""
        assert bound > 0
        bits = (bound - 1).bit_length()
        length = (bits + 7) // 8
        while True:
            # Redraw instead of using a modulo, which would favour small numbers.
            drawn = int.from_bytes(os.urandom(length), "big") >> (length * 8 - bits)
            if drawn < bound:
                return drawn


class RealFile:
    """An open file of this machine, by its descriptor.

    The end of a file opened for writing is tracked here without a system call: this process is
    its only writer.
    """

    __slots__ = ("_descriptor", "_end_bytes", "_sync_error", "path")

    def __init__(self, path: str, descriptor: int, size_bytes: int) -> None:
        """Create from an open descriptor; `size_bytes` is the file's current size."""
        self.path = path
        self._descriptor = descriptor
        #: End of the file; only this process writes to it.
        self._end_bytes = size_bytes
        #: Error number of the first failed sync: all later ones fail too. None without one.
        self._sync_error: int | None = None

    def size_bytes(self) -> int:
        """Return the size now; a file that another process appends to may grow."""
        try:
            return os.fstat(self._descriptor).st_size
        except OSError as error:
            raise self._failure(error, "stat") from error

    def read_at(self, position: int, length: int) -> bytes:
        """Return up to `length` bytes from `position`; fewer only at the end of the file."""
        assert position >= 0
        if length > UNCHECKED_READ_BYTES_MAX:
            # os.pread allocates the whole length before it reads.
            length = min(length, self.size_bytes() - position)
        if length <= 0:
            return b""
        try:
            content = os.pread(self._descriptor, length, position)
            if len(content) == length or not content:
                return content
            parts = [content]
            missing = length - len(content)
            while missing and parts[-1]:
                parts.append(os.pread(self._descriptor, missing, position + length - missing))
                missing -= len(parts[-1])
        except OSError as error:
            raise self._failure(error, "read") from error
        return b"".join(parts)

    def read_into(self, position: int, buffer: bytearray | memoryview) -> int:
        """Fill `buffer` from `position`; returns the bytes read, short only at the end."""
        assert position >= 0
        view = memoryview(buffer)
        done = 0
        try:
            while done < len(view):
                got = os.preadv(self._descriptor, (view[done:],), position + done)
                if not got:
                    break
                done += got
        except OSError as error:
            raise self._failure(error, "read") from error
        return done

    def append(self, buffers: Sequence[Buffer]) -> int:
        """Write all buffers at the end; returns the position of the first byte."""
        start = self._end_bytes
        position = start
        try:
            if len(buffers) == 1:
                # The common case. The rest of a short write takes the general path.
                (content,) = buffers
                written = os.pwrite(self._descriptor, content, start)
                if written == len(content):
                    self._end_bytes = start + written
                    return start
            for first in range(0, len(buffers), IOV_BUFFERS_MAX):
                position = self._write_all(buffers[first : first + IOV_BUFFERS_MAX], position)
        except OSError as error:
            raise self._failure(error, "write") from error
        self._end_bytes = position
        return start

    def write_at(self, position: int, buffer: Buffer) -> None:
        """Overwrite bytes in place, growing the file if needed."""
        assert position >= 0
        try:
            end = self._write_all((buffer,), position)
        except OSError as error:
            raise self._failure(error, "write") from error
        self._end_bytes = max(self._end_bytes, end)

    def truncate(self, size_bytes: int) -> None:
        """Truncate or zero-extend the file to `size_bytes`."""
        try:
            os.ftruncate(self._descriptor, size_bytes)
        except OSError as error:
            raise self._failure(error, "truncate") from error
        self._end_bytes = size_bytes

    def reserve(self, size_bytes: int) -> None:
        """Reserve disk space up to a size; does nothing on systems without that call."""
        code = reserve_blocks(self._descriptor, size_bytes)
        if code:
            # The disk is full: release the space that was reserved.
            self.truncate(self._end_bytes)
            raise self._failure(OSError(code, os.strerror(code)), "reserve room")

    def sync(self) -> None:
        """Make all written bytes durable; after one failure every call fails (L9).

        A second fsync after a failed one can succeed although the data is lost: the kernel has
        marked the pages clean.
        """
        if self._sync_error is not None:
            from engine.host.ports import LogDirOffline

            raise LogDirOffline(self.path, "sync", "an earlier sync failed", self._sync_error)
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            self._sync_error = error.errno or errno.EIO
            raise self._failure(error, "sync") from error

    def fileno(self) -> int | None:
        """Return the descriptor, for sendfile."""
        return self._descriptor

    def close(self) -> None:
        """Release the file; closing twice is allowed."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor < 0:
            return
        try:
            os.close(descriptor)
        except OSError as error:
            raise self._failure(error, "close") from error

    def _write_all(self, buffers: Sequence[Buffer], position: int) -> int:
        """Write every byte of the buffers from `position` on.

        Return the position after the last.
        """
        end = position + sum(memoryview(buffer).nbytes for buffer in buffers)
        position += os.pwritev(self._descriptor, buffers, position)
        if position == end:
            return end
        # A short write is rare (a full disk, a signal): only then are the parts joined.
        whole = memoryview(b"".join(buffers))
        while position < end:
            position += os.pwrite(
                self._descriptor, whole[len(whole) - (end - position) :], position
            )
        return end

    def _failure(self, error: OSError, operation: str) -> StorageError:
        """Return the StorageError for an error of the operating system on this file."""
        return storage_error(error.errno or errno.EIO, self.path, operation)


class RealFiles:
    """The file system of this machine."""

    def open(self, path: str, *, write: bool = False, create: bool = False) -> File:
        """Open a file, read-only unless `write`; raises FileMissing unless `create`.

        Only regular files are opened: a pipe or device would block or never end. For writing, links
        are refused too: the target may belong to another owner.
        """
        # Without O_NONBLOCK, opening a pipe blocks until it has a writer; files ignore the flag.
        flags = os.O_NONBLOCK | (os.O_RDWR if write else os.O_RDONLY)
        if write:
            flags |= os.O_NOFOLLOW
        if create:
            flags |= os.O_CREAT
        try:
            descriptor = os.open(path, flags, _FILE_MODE)
        except OSError as error:
            if error.errno == errno.ELOOP and self.is_link(path):
                from engine.host.ports import FileRefused

                reason = "it is a link, and what it leads to may be somebody else's"
                raise FileRefused(path, "write", reason, errno.ELOOP) from error
            raise _failure(error, path, "open") from error
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                code = errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.EPERM
                raise storage_error(code, path, "open")
        except BaseException:
            os.close(descriptor)
            raise
        return RealFile(path, descriptor, status.st_size)

    def exists(self, path: str) -> bool:
        """Return True if a file or directory exists at the path."""
        return os.path.exists(path)

    def is_dir(self, path: str) -> bool:
        """Return True if the path is a directory."""
        return os.path.isdir(path)

    def is_link(self, path: str) -> bool:
        """Return True if the path itself is a symbolic link, even to a missing file."""
        return os.path.islink(path)

    def size_bytes(self, path: str) -> int:
        """Return a file's size without opening it."""
        return self._stat(path).st_size

    def modified_ms(self, path: str) -> int:
        """Return a file's modification time in ms since the Unix epoch."""
        return self._stat(path).st_mtime_ns // 1_000_000

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """Set a file's modification time, in ms since the Unix epoch."""
        try:
            os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))
        except OSError as error:
            raise _failure(error, path, "set the time of") from error

    def make_private(self, path: str) -> None:
        """Remove the access of other users to a file."""
        try:
            os.chmod(path, _PRIVATE_MODE)
        except OSError as error:
            raise _failure(error, path, "make private") from error

    def read_bytes(self, path: str) -> bytes:
        """Return the content of a file, which should be small."""
        handle = self.open(path)
        try:
            return handle.read_at(0, handle.size_bytes())
        finally:
            handle.close()

    def list_dir(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""
        try:
            return sorted(os.listdir(path))
        except OSError as error:
            raise _failure(error, path, "list") from error

    def absolute_path(self, path: str) -> str:
        """Return the path from the root, with `.` and `..` resolved and links kept."""
        return os.path.abspath(path)

    def disk_space(self, path: str) -> DiskSpace:
        """Return the space of the file system that a file or directory lies in."""
        from engine.host.ports import DiskSpace

        try:
            volume = os.statvfs(path)
        except OSError as error:
            raise _failure(error, path, "stat") from error
        # Space reserved for the superuser does not count as usable.
        return DiskSpace(volume.f_blocks * volume.f_frsize, volume.f_bavail * volume.f_frsize)

    def make_dir(self, path: str) -> None:
        """Create a directory and its parents, unless they exist."""
        try:
            os.makedirs(path, exist_ok=True)
        except OSError as error:
            raise _failure(error, path, "create") from error

    def rename(self, source: str, target: str) -> None:
        """Move a file or directory atomically, replacing a file at the target."""
        try:
            os.replace(source, target)
        except OSError as error:
            raise _failure(error, source, f"rename to {target}") from error

    def remove(self, path: str) -> None:
        """Remove a file or an empty directory."""
        try:
            if stat.S_ISDIR(os.lstat(path).st_mode):
                os.rmdir(path)
            else:
                os.unlink(path)
        except OSError as error:
            raise _failure(error, path, "remove") from error

    def sync_dir(self, path: str) -> None:
        """Make the names in a directory durable."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise _failure(error, path, "sync") from error

    def replace_file(self, path: str, content: bytes) -> None:
        """Replace a file durably and atomically; `replace.py` has the steps."""
        replace_durably(self, path, content)

    def _stat(self, path: str) -> os.stat_result:
        """Return the file's status; raises StorageError."""
        try:
            return os.stat(path)
        except OSError as error:
            raise _failure(error, path, "stat") from error


def _failure(error: OSError, path: str, operation: str) -> StorageError:
    """Return the StorageError for an error of the operating system, EIO if it has no number."""
    return storage_error(error.errno or errno.EIO, path, operation)
