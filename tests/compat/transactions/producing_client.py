"""One client in one cell: its process, its topic, and which transactions it has committed."""

from __future__ import annotations

import select
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.compat.client_programs import ClientPrograms

PARTITIONS: Final = 3
#: Longer than a client's own bound of a call.
_ANSWER_S: Final = 60.0
_ATTEMPTS_MAX: Final = 6
_OK: Final = "ok"


class WorkerProcess:
    """A process that answers commands."""

    def __init__(self, command: Sequence[str], errors: Path) -> None:
        with errors.open("ab") as file:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, text=True
            )

    def execute(self, command: str) -> str:
        """Send a command and return its answer: `ok`, or `error NAME`."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(f"{command}\n")
            stdin.flush()
        except BrokenPipeError:
            return "error ended"
        ready, _, _ = select.select([stdout], [], [], _ANSWER_S)
        if not ready:
            return "error no-answer"
        return stdout.readline().strip() or "error ended"

    def kill(self) -> None:
        """Kill it."""
        self._process.kill()
        self._process.wait()


class ProducingClient:
    """A client that writes transactions of three records and an offset each."""

    def __init__(
        self,
        client: str,
        programs: ClientPrograms,
        bootstrap: str,
        transactional_id: str,
        folder: Path,
    ) -> None:
        """Its topic and its group have the name of its transactional id."""
        self.client = client
        self.name = transactional_id
        self._program = programs.command(client)
        self._bootstrap = bootstrap
        self._errors = folder / f"{transactional_id}.err"
        self._workers: list[WorkerProcess] = []
        self._attempt = 0
        #: Values, and the committed offset, of transactions whose commit was acknowledged.
        self.committed: list[str] = []
        self.committed_offset = -1
        #: Those of commits whose outcome the client does not know.
        self.perhaps_committed: list[list[str]] = []
        #: Each command that failed, and how.
        self.failures: list[str] = []

    def start(self, timeout_ms: int = 60_000) -> WorkerProcess:
        """Start a process of the client."""
        arguments = [self._bootstrap, self.name, str(timeout_ms)]
        worker = WorkerProcess([*self._program, *arguments], self._errors)
        self._workers.append(worker)
        return worker

    def end(self) -> None:
        """Kill its processes."""
        for worker in self._workers:
            worker.kill()

    def does(self, worker: WorkerProcess, command: str) -> bool:
        """Execute a command; a failure is noted."""
        answer = worker.execute(command)
        if answer != _OK:
            self.failures.append(f"{command.split(maxsplit=1)[0]}: {answer.removeprefix('error ')}")
        return answer == _OK

    def values(self) -> list[str]:
        """Return the values of another transaction, one for each partition."""
        self._attempt += 1
        return [f"{self._attempt}-{partition}" for partition in range(PARTITIONS)]

    def sends(self, worker: WorkerProcess, values: Sequence[str]) -> bool:
        """Send values, one to each partition."""
        return all(
            self.does(worker, f"send {self.name} {partition} {value}")
            for partition, value in enumerate(values)
        )

    def adds_offset(self, worker: WorkerProcess) -> bool:
        """Add an offset that rises with each attempt."""
        return self.does(worker, f"offsets {self.name} {self.name} 0 {self._attempt}")

    def commits(self, worker: WorkerProcess, values: list[str]) -> bool:
        """Commit values, and the offset of the attempt."""
        if self.does(worker, "commit"):
            self.committed += values
            self.committed_offset = self._attempt
            return True
        self.perhaps_committed.append(values)
        return False

    def completes(self, worker: WorkerProcess) -> WorkerProcess:
        """Write one more transaction as an application does; return the process that could.

        1. What fails is aborted, and begun again.
        2. What cannot be aborted, or fails to begin, is left to another process of the same id.

        Raises RuntimeError where no attempt succeeds.
        """
        for _ in range(_ATTEMPTS_MAX):
            values = self.values()
            begins = self.does(worker, "begin")
            if (
                begins
                and self.sends(worker, values)
                and self.adds_offset(worker)
                and self.commits(worker, values)
            ):
                return worker
            if not (begins and self.does(worker, "abort")):
                worker.kill()
                worker = self.start()
                self.does(worker, "init")
        raise RuntimeError(f"{self.name}: nothing was committed: {self.failures}")
