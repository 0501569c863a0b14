"""Replaced files of keys and certificates are found without a request, and used if they are fine.

```
every TLS_FILES_CHECK_MS, on a worker thread
    states of the files (time, size, inode) ── as when judged last ──> nothing
        └─ changed ──> content as in use? else load, and check the certificate as for a request
on the loop
    fine ──> new connections use it, open ones live on
    not  ──> one line of the log; they are judged again when they change once more
```

A file that is half-written is such a one: its second half changes it.

Source: none of Kafka's, whose brokers read replaced files with the next change of their settings.
"""

from __future__ import annotations

import logging
from typing import Final

from engine.broker.live_tls import FileStates, LiveTls, ReplacedFiles
from engine.broker.tasks import LoopTasks
from engine.errors import ConfigError, StorageError
from engine.host.tls_stores import BadTlsFile
from engine.limits import TLS_FILES_CHECK_MS

_log = logging.getLogger("kafka.network.SocketServer")
_NAME: Final = "check-tls-files"
_NEXT: Final = "put a whole file there, with its key or certificates, that the password opens"


class TlsFileWatch:
    """The watch over the files of all listeners of a broker."""

    def __init__(self, tls: LiveTls, tasks: LoopTasks) -> None:
        self._tls = tls
        self._tasks = tasks
        # The states of the files that were judged since a listener's own were loaded.
        self._judged: dict[str, FileStates] = {}
        self._refused: set[str] = set()
        self._is_reading = False

    def start(self) -> None:
        """Check from now on; without a listener with TLS there is nothing to check."""
        if self._tls.is_used:
            self._tasks.every(
                _NAME, TLS_FILES_CHECK_MS, self.check, first_after_ms=TLS_FILES_CHECK_MS
            )

    def check(self) -> None:
        """Read what has been replaced, on a worker thread, and use it."""
        if self._is_reading:
            return
        self._is_reading = True
        read = self._tls.reader_of_replaced(dict(self._judged))
        found: list[ReplacedFiles] = []

        def work() -> None:
            found.extend(read())

        def done(_error: StorageError | None) -> None:
            self._is_reading = False
            for replaced in found:
                self._judge(replaced)

        self._tasks.offload(_NAME, work, done)

    def _judge(self, replaced: ReplacedFiles) -> None:
        """Use files that can be used, and log why others cannot."""
        name = replaced.listener.name
        if not self._tls.is_current(replaced):
            # A request was sooner: its files are compared with theirs.
            self._judged.pop(name, None)
            return
        self._judged[name] = replaced.states
        new = replaced.found
        was_refused = name in self._refused
        self._refused.discard(name)
        if isinstance(new, ConfigError):
            self._refused.add(name)
            _log_refusal(name, new)
        elif new is not None:
            self._tls.use(replaced.listener, new)
        elif was_refused:
            _log.info("The files of listener %s are those that it goes by again", name)


def _log_refusal(listener: str, error: ConfigError) -> None:
    bad = error.__cause__
    _log.error(
        "Listener %s keeps the keys and certificates that it has, for a file that was replaced "
        "cannot be used: %s; %s: it is read within %d s, no request is needed",
        listener,
        bad if isinstance(bad, BadTlsFile) else error.rule,
        error.hint or _NEXT,
        TLS_FILES_CHECK_MS // 1000,
    )
