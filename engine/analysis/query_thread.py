"""Run a DuckDB query on a thread of its own, so that Ctrl-C and SIGTERM can end it at any time.

```
main thread     waits ─ signal ─► stop: reads of files fail, DuckDB is interrupted repeatedly
                                  (an interrupt between two of its calls has no effect)
query thread    connect ─► plan ─► rows from files ─► result, or the error of the stop
```
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Generic

from engine.analysis.interruptible import Result, run_interruptible
from engine.errors import EngineError
from engine.host.ports import File
from engine.host.read_only_files import ReadOnlyFile
from engine.host.source_files import SourceFiles

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_INTERRUPT_EVERY_S: Final = 0.02


class QueryStopped(EngineError):
    """A file is read for a query that was stopped."""

    def __init__(self) -> None:
        super().__init__("the query was stopped")


class QueryFiles(SourceFiles):
    """The files that a query reads; once the query is stopped, each read raises QueryStopped."""

    def __init__(self) -> None:
        super().__init__()
        self._is_stopped = False

    def stop(self) -> None:
        """Make all further reads of the query fail; may be called from any thread."""
        self._is_stopped = True

    def check(self) -> None:
        """Raise QueryStopped if the query was stopped."""
        if self._is_stopped:
            raise QueryStopped

    def open(self, path: str, *, write: bool = False, create: bool = False) -> File:
        """Open a file whose reads fail once the query is stopped.

        Raises FileMissing, FileRefused, QueryStopped.
        """
        self.check()
        return _QueryFile(super().open(path, write=write, create=create), self.check)


class _QueryFile(ReadOnlyFile):
    """A file whose reads fail once the query is stopped."""

    def __init__(self, file: File, check: Callable[[], None]) -> None:
        super().__init__(file.path, 0)
        self._file = file
        self._check = check

    def size_bytes(self) -> int:
        """Return the file's size in bytes now."""
        return self._file.size_bytes()

    def read_at(self, position: int, length: int) -> bytes:
        """Return up to `length` bytes; fewer only at the end of the file."""
        self._check()
        return self._file.read_at(position, length)

    def read_into(self, position: int, buffer: bytearray | memoryview) -> int:
        """Fill `buffer` from `position`; returns the bytes read, short only at the end."""
        self._check()
        return self._file.read_into(position, buffer)

    def fileno(self) -> int | None:
        """Return the file's descriptor, None where there is none."""
        return self._file.fileno()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


#: What a query does with its connection and its files.
Work = Callable[["DuckDBPyConnection", QueryFiles], Result]


class _Query(Generic[Result]):
    """A query on its thread, with the connection to interrupt."""

    def __init__(self, connect: Callable[[], DuckDBPyConnection], work: Work[Result]) -> None:
        self._connect = connect
        self._work = work
        self._files = QueryFiles()
        #: The connection, while it may be interrupted. None before it is made and once it closes.
        self._connection: DuckDBPyConnection | None = None
        self._lock = threading.Lock()

    def run(self) -> Result:
        """Open a DuckDB connection and run the query's work, on the query's own thread.

        The connection is closed at the end.
        """
        self._files.check()
        connection = self._connect()
        self._use(connection)
        try:
            return self._work(connection, self._files)
        finally:
            self._use(None)
            connection.close()

    def _use(self, connection: DuckDBPyConnection | None) -> None:
        """Set the connection that `stop` interrupts, None while there is none."""
        with self._lock:
            self._connection = connection

    def stop(self, ended: threading.Event, end_s: float) -> None:
        """Interrupt the query until it has ended, for `end_s` at most; called by another thread."""
        self._files.stop()
        for _ in range(round(end_s / _INTERRUPT_EVERY_S)):
            if ended.wait(_INTERRUPT_EVERY_S):
                return
            with self._lock:
                if self._connection is not None:
                    self._connection.interrupt()


def on_query_thread(connect: Callable[[], DuckDBPyConnection], work: Work[Result]) -> Result:
    """Run `work` with a new DuckDB connection on another thread, and return its result.

    The connection is closed after it. Raises the errors of `work`, and the exception of a signal
    handler in this thread, after the query was stopped.
    """
    query = _Query(connect, work)
    return run_interruptible(query.run, query.stop)
