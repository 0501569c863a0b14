"""A cluster as a child process that may be killed at any moment, always on the same port."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

_POLL_S = 0.01


class DidNotStart(AssertionError):
    """The process ended or said nothing in time."""


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


class BrokerProcess:
    """`kctl cluster start --foreground` on one data directory."""

    def __init__(self, data: Path, settings: dict[str, str]) -> None:
        self.data = data
        self.log_dir = data / "broker-1"
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self._settings = settings
        self._said = data.with_suffix(".log")
        self._process: subprocess.Popen[bytes] | None = None

    def launch(self) -> None:
        """Start the process without waiting for anything."""
        assert not self.is_alive
        command = [sys.executable, "-m", "kctl", "cluster", "start", "--foreground"]
        command += ["--data", str(self.data), "--port", str(self.port)]
        for key, value in self._settings.items():
            command += ["--set", f"{key}={value}"]
        with self._said.open("ab") as said:
            self._process = subprocess.Popen(command, stdout=said, stderr=said)

    def wait_ready(self, timeout_s: float = 60.0) -> None:
        """Wait until clients can work; raises DidNotStart."""
        assert self._process is not None
        deadline = time.monotonic() + timeout_s
        while self._running_pid() != self._process.pid:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise DidNotStart(self.said())
            time.sleep(_POLL_S)

    def _running_pid(self) -> int | None:
        try:
            pid: int = json.loads((self.data / "running.json").read_bytes())["pid"]
        except (FileNotFoundError, ValueError):
            return None
        return pid

    @property
    def is_alive(self) -> bool:
        """Return whether the process runs."""
        return self._process is not None and self._process.poll() is None

    def pids(self) -> dict[str, int]:
        """Return the process that runs now, by its name."""
        assert self._process is not None
        return {"broker": self._process.pid}

    def kill(self) -> None:
        """End the process as `kill -9` does; one that has ended is fine."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def ask_to_stop(self) -> None:
        """Send SIGTERM and do not wait."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)

    def stop(self) -> None:
        """Stop it cleanly and see that it did."""
        assert self._process is not None
        self.ask_to_stop()
        assert self._process.wait(60) == 0, self.said()

    def said(self) -> str:
        """Return the last of what the process wrote."""
        return self._said.read_text(errors="replace")[-4000:]

    def faults(self) -> list[str]:
        """Return what the process wrote that no broker should have to say."""
        text = self._said.read_text(errors="replace")
        words = ("Traceback", "was not served", " CRITICAL ", "is offline", " failed: ")
        return [line for line in text.splitlines() if any(word in line for word in words)]
