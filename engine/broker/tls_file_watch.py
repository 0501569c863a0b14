"""Detect replaced key and certificate files without a request, and use them if they are valid.

```
every TLS_FILES_CHECK_MS, on a worker thread
    states of the files (time, size, inode) ── unchanged since the last check ──> nothing
        └─ changed ──> content as in use? else load, and check the certificate as for a request
on the loop
    valid      ──> new connections use them, open ones stay
    invalid    ──> one log line; they are checked again after their next change
    unreadable ──> one log line; they are read again after the next period
```

A half-written file will change again. An unreadable file, for lack of permission or descriptors,
may become readable without a change.

Source: none; Kafka's brokers read replaced files at the next change of their settings.
"""

from __future__ import annotations

import logging
from typing import Final

from engine.broker.live_tls import FileStates, LiveTls, ReplacedFiles
from engine.broker.tasks import LoopTasks
from engine.errors import ConfigError, StorageError
from engine.host.tls_stores import BadTlsFile, is_unreadable
from engine.limits import TLS_FILES_CHECK_MS

_log = logging.getLogger("kafka.network.SocketServer")
_NAME: Final = "check-tls-files"
_NEXT: Final = "put a whole file there, with its key or certificates, that the password opens"


class TlsFileWatch:
    """Checks the TLS files of all listeners of a broker periodically."""

    def __init__(self, tls: LiveTls, tasks: LoopTasks) -> None:
        """Create the watch of the listeners' TLS files; nothing is read before the first check."""
        self._tls = tls
        self._tasks = tasks
        #: States of the files that were checked last, by listener: unchanged files are not read
        #: again.
        self._judged: dict[str, FileStates] = {}
        #: States and error of the files whose refusal was logged, by listener: the same one is not
        #: logged again.
        self._refused: dict[str, tuple[FileStates, str]] = {}
        #: Gets one element when the worker thread ends, also after an exception. Empty while a
        #: check runs.
        self._ended: list[bool] = [True]

    def start(self) -> None:
        """Start the periodic check, if any listener has TLS."""
        if self._tls.is_used:
            self._tasks.every(
                _NAME, TLS_FILES_CHECK_MS, self.check, first_after_ms=TLS_FILES_CHECK_MS
            )

    def check(self) -> None:
        """Read replaced TLS files on a worker thread, then use the valid ones.

        Does nothing while an earlier check runs.
        """
        if not self._ended:
            return
        read = self._tls.make_replaced_reader(dict(self._judged))
        found: list[ReplacedFiles] = []
        ended = self._ended = []

        def read_files() -> None:
            """Read replaced files on a worker thread; mark the end even after an exception."""
            try:
                found.extend(read())
            finally:
                ended.append(True)

        def done(_error: StorageError | None) -> None:
            """Use or refuse each of the files that were read, on the event loop."""
            for replaced in found:
                self._judge(replaced)

        self._tasks.offload(_NAME, read_files, done)

    def _judge(self, replaced: ReplacedFiles) -> None:
        """Use a listener's replaced files if they are valid; log them if they are not."""
        name = replaced.listener.name
        if not self._tls.is_current(replaced):
            # A request has loaded other files meanwhile: the next check compares with those.
            self._judged.pop(name, None)
            return
        new = replaced.found
        refused = self._refused.pop(name, None)
        if isinstance(new, ConfigError):
            self._refuse(replaced, new, refused)
            return
        self._judged[name] = replaced.states
        if new is not None:
            self._tls.use(replaced.listener, new)
        elif refused is not None:
            _log.info("The files of listener %s are those that it goes by again", name)

    def _refuse(
        self, replaced: ReplacedFiles, error: ConfigError, before: tuple[FileStates, str] | None
    ) -> None:
        """Log once why replaced files cannot be used.

        Files that could not be read are read again at the next check, others when they change.
        """
        name, bad = replaced.listener.name, error.__cause__
        if isinstance(bad, BadTlsFile) and is_unreadable(bad):
            self._judged.pop(name, None)
        else:
            self._judged[name] = replaced.states
        self._refused[name] = (replaced.states, str(error))
        if self._refused[name] != before:
            _log_refusal(name, error)


def _log_refusal(listener: str, error: ConfigError) -> None:
    """Log why replaced files cannot be used, and when they are read again."""
    bad = error.__cause__
    _log.error(
        "Listener %s keeps the keys and certificates that it has, for a file that was replaced "
        "cannot be used: %s; %s: it is read within %d s, no request is needed",
        listener,
        bad if isinstance(bad, BadTlsFile) else error.rule,
        error.hint or _NEXT,
        TLS_FILES_CHECK_MS // 1000,
    )
