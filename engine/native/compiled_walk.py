"""The compiled version of `records.record_walk`, called through ctypes: loading and compilation.

```
cached, right for the samples      used from now on
not cached, numba installed        a process of the lowest priority compiles and caches it, once for
                                   this machine (2 s); the broker loads it when that has ended
anything else                      records are checked in plain Python
```

A broker looks for the code only a moment after its start, so that its start takes no longer. The
compiler process goes on to its end even if the broker ends before.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from importlib.util import find_spec

from engine.errors import StorageError
from engine.host import processes
from engine.host.ports import Buffer, Clock, Timers
from engine.limits import (
    COPIED_FOR_A_CALL_BYTES_MAX,
    WALK_CACHE_CHECKS_MAX,
    WALK_COMPILE_DELAY_MS,
    WALK_COMPILE_POLL_MS,
    WALK_TAKE_UP_DELAY_MS,
)
from engine.native import record_walk
from engine.native.flat_code import flat_path, load_flat
from engine.native.record_walk import RecordWalk, Walked

_SOURCES = ("walk_kernel.py", "kernel_varint.py")
_COMPILER = "engine.native.flat_compiler"


def kept_walk_path() -> str | None:
    """Return the cache path of the compiled walk for this machine, None without a cache folder."""
    return flat_path("record-walk", record_walk.__file__, _SOURCES)


def load_walk(path: str) -> RecordWalk | None:
    """Return the walk cached at a path, None without one; the caller must test it before use."""
    address = load_flat(path)
    return None if address is None else create_walk(address)


def create_walk(address: int) -> RecordWalk:
    """Return a record walk that calls the code at an address; for one thread."""
    import ctypes

    # The function's result, and what `walk_kernel` puts into `out`.
    numbers = array("q", (0, 0, 0))
    numbers_at, _ = numbers.buffer_info()
    result, out = ctypes.c_void_p(numbers_at), ctypes.c_void_p(numbers_at + numbers.itemsize)
    # Unlike CFUNCTYPE this holds the interpreter's lock: releasing it takes longer than a walk.
    # Argument types are not declared: checking them would take as long as the rest of the call.
    call = ctypes.PYFUNCTYPE(ctypes.c_int)(address)
    byte_in, by_reference = ctypes.c_char.from_buffer, ctypes.byref

    def walk(data: Buffer, position: int, count: int) -> Walked:
        """Check records with the compiled code; small or read-only buffers are copied before."""
        size = len(data) - position
        block: object
        if size < COPIED_FOR_A_CALL_BYTES_MAX:
            block = bytes(data[position:])
        else:
            try:
                block = by_reference(byte_in(data, position))
            except TypeError:
                # The buffer is read-only, so ctypes cannot get its address.
                block = bytes(data[position:])
        call(result, None, block, size, count, out)
        verdict, least, greatest = numbers
        return (least, greatest, verdict == 2) if verdict else None

    return walk


class CompiledWalkLoader:
    """Loads the compiled walk into a process that runs brokers."""

    def __init__(self, timers: Timers, clock: Clock, start: Callable[[], int | None]) -> None:
        """`start` starts the compiler and returns its pid, None if it cannot."""
        self._timers = timers
        self._clock = clock
        self._start = start
        self._pid = 0
        self._checks_left = WALK_CACHE_CHECKS_MAX

    def begin(self) -> None:
        """Schedule `_load_or_schedule` for WALK_TAKE_UP_DELAY_MS after the broker's start."""
        self._after(WALK_TAKE_UP_DELAY_MS, self._load_or_schedule)

    def _load_or_schedule(self) -> None:
        """Use the cached code; without it schedule the compilation."""
        path = kept_walk_path()
        if path is None or self._use_cached(path):
            return
        self._after(WALK_COMPILE_DELAY_MS, self._compile)

    def _use_cached(self, path: str) -> bool:
        """Use the cached walk if it gives right results.

        Return True if one is cached, right or not.
        """
        walk = load_walk(path)
        if walk is not None:
            record_walk.use_compiled(walk)
        return walk is not None

    def _compile(self) -> None:
        """Start the compiler's process, and schedule the first check for its end."""
        pid = self._start()
        if pid is not None:
            self._pid = pid
            self._after(WALK_COMPILE_POLL_MS, self._poll)

    def _poll(self) -> None:
        """If the compiler's process has ended, use the code it cached; else schedule another check.

        After an end without cached code, checks are repeated until `_checks_left` is 0.
        """
        if not processes.is_running(self._pid):
            path = kept_walk_path()
            # The process ends at once if another broker's compiler process is running.
            self._checks_left -= 1
            if path is None or self._use_cached(path) or not self._checks_left:
                return
        self._after(WALK_COMPILE_POLL_MS, self._poll)

    def _after(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Schedule an action on the loop, `delay_ms` from now."""
        self._timers.call_at(self._clock.monotonic_ms() + delay_ms, action)


def start_compiler() -> int | None:
    """Start a process that compiles and caches every function of `flat_compiler` not yet cached.

    Return its pid, None if it cannot start or numba is not installed.
    """
    if find_spec("numba") is None:
        return None
    try:
        return processes.start_in_session(_COMPILER)
    except StorageError:
        return None
