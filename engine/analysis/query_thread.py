"""DuckDB on a thread of its own, so that Ctrl-C and SIGTERM end a query at any time.

Python handles signals in its main thread alone, between two instructions of its own: not while that
thread is inside DuckDB, which may take hours.

```
main thread     waits ─ signal ─► stop: no file is read any more, DuckDB is interrupted again and
                                  again (it forgets an interrupt between two calls)
query thread    connect ─► plan ─► rows from files ─► result, or whatever the stop makes of it
```

A query that does not end within END_S is left behind: its thread keeps no process alive.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from engine.errors import EngineError
from engine.host.deferred_signals import signals_blocked
from engine.host.ports import File
from engine.host.read_only_files import ReadOnlyFile
from engine.host.source_files import SourceFiles

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Result = TypeVar("Result")

_NAME: Final = "kctl-query"
#: How long a query may take to end once it is to stop: some joins of DuckDB heed no interrupt.
END_S = 1.0
#: How often the main thread lets Python run handlers of signals that another thread took.
_WAIT_S: Final = 0.2
_INTERRUPT_EVERY_S: Final = 0.02


class QueryStopped(EngineError):
    """A file is read for a query that is to stop."""

    def __init__(self) -> None:
        super().__init__("the query was stopped")


class QueryFiles(SourceFiles):
    """The files that a query reads; once it is to stop, each further read raises QueryStopped."""

    def __init__(self) -> None:
        super().__init__()
        self._is_stopped = False

    def stop(self) -> None:
        """Refuse all further reads; for any thread."""
        self._is_stopped = True

    def check(self) -> None:
        """Raise QueryStopped if nothing is to be read any more."""
        if self._is_stopped:
            raise QueryStopped

    def open(self, path: str, *, write: bool = False, create: bool = False) -> File:
        """Open a file for reading; raises FileMissing, FileRefused, QueryStopped."""
        self.check()
        return _QueryFile(super().open(path, write=write, create=create), self.check)


class _QueryFile(ReadOnlyFile):
    """A file that checks before each read whether the query goes on."""

    def __init__(self, file: File, check: Callable[[], None]) -> None:
        super().__init__(file.path, 0)
        self._file = file
        self._check = check

    def size_bytes(self) -> int:
        """Return the size now."""
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
        """Release the file."""
        self._file.close()


#: What a query does with its connection and its files.
Work = Callable[["DuckDBPyConnection", QueryFiles], Result]


class _Query(Generic[Result]):
    """A query on its thread, as both threads see it."""

    def __init__(self, connect: Callable[[], DuckDBPyConnection], work: Work[Result]) -> None:
        self._connect = connect
        self._work = work
        self._files = QueryFiles()
        #: The connection, while it may be interrupted. None before it is made and once it closes.
        self._connection: DuckDBPyConnection | None = None
        self._lock = threading.Lock()
        self.ended = threading.Event()
        self.results: list[Result] = []
        #: Why there is no result. None while the query runs.
        self.failure: BaseException | None = None

    def run(self) -> None:
        """Run to the end; on the query's thread."""
        try:
            self._files.check()
            connection = self._connect()
            self._use(connection)
            try:
                self.results.append(self._work(connection, self._files))
            finally:
                self._use(None)
                connection.close()
        except BaseException as error:
            self.failure = error
        finally:
            self.ended.set()

    def _use(self, connection: DuckDBPyConnection | None) -> None:
        """Set what an interrupt is for."""
        with self._lock:
            self._connection = connection

    def stop(self) -> None:
        """Have the query end, and wait for that, END_S at most; on the waiting thread."""
        self._files.stop()
        for _ in range(round(END_S / _INTERRUPT_EVERY_S)):
            if self.ended.wait(_INTERRUPT_EVERY_S):
                return
            with self._lock:
                if self._connection is not None:
                    self._connection.interrupt()


def on_query_thread(connect: Callable[[], DuckDBPyConnection], work: Work[Result]) -> Result:
    """Return what `work` makes of a new connection, which is closed after it, on another thread.

    Raises its errors, and what a signal's handler raises in this thread, once the query has ended.
    """
    query = _Query(connect, work)
    thread = threading.Thread(target=query.run, name=_NAME, daemon=True)
    try:
        # The threads of a query inherit that they get no signals: this one is to be woken up.
        with signals_blocked():
            thread.start()
        while not query.ended.wait(_WAIT_S):
            pass
    except BaseException:
        query.stop()
        raise
    if query.failure is not None:
        raise query.failure
    return query.results.pop()


def is_left_behind() -> bool:
    """Return whether a query of this process did not stop when it was to."""
    return any(thread.name == _NAME for thread in threading.enumerate())
