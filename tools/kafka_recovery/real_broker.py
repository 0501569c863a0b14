"""One broker of a Kafka release and its ZooKeeper, started on log directories of our making."""

from __future__ import annotations

import socket
import struct
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from engine.log.directory.clean_shutdown import FILE_NAME as CLEAN_SHUTDOWN

_PAUSE_S = 0.1
_START_OVER_S = 1.0
#: An ApiVersions request of version 0, without a client's name.
_API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)
_LOGGING = """log4j.rootLogger=INFO, file
log4j.appender.file=org.apache.log4j.FileAppender
log4j.appender.file.File={path}
log4j.appender.file.layout=org.apache.log4j.PatternLayout
log4j.appender.file.layout.ConversionPattern=%p %m (%c)%n
"""


class RealBroker:
    """A ZooKeeper and a broker, one after the other on the same directory."""

    def __init__(
        self, libs: Path, folder: Path, port: int, *, logging_rows: str = _LOGGING
    ) -> None:
        """`logging_rows` are those of log4j, with `{path}` for the file that is written."""
        self._libs = libs
        self._logging_rows = logging_rows
        self._folder = folder
        self._port = port
        self._zookeeper: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> RealBroker:
        config = self._folder / "zookeeper.properties"
        config.write_text(
            f"dataDir={self._folder}/zookeeper\nclientPort={self._port + 1}\n"
            "clientPortAddress=127.0.0.1\nadmin.enableServer=false\n"
        )
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        self._zookeeper = self._java("zookeeper", main, config)
        _wait_for_port(self._port + 1, self._zookeeper, 60)
        return self

    def __exit__(self, *_: object) -> None:
        if self._zookeeper is not None:
            self._zookeeper.terminate()
            self._zookeeper.wait(30)

    def start_and_stop(
        self, log_dir: Path, settings: Mapping[str, str], limit_s: float, *, serves_s: float = 0
    ) -> bool:
        """Run a broker until it serves, and so long after it, then stop it cleanly.

        False if it gave up by itself.
        """
        rows = {
            "broker.id": "1",
            "listeners": f"PLAINTEXT://127.0.0.1:{self._port}",
            "log.dirs": str(log_dir),
            "zookeeper.connect": f"127.0.0.1:{self._port + 1}",
            **settings,
        }
        config = self._folder / "broker.properties"
        config.write_text("".join(f"{key}={value}\n" for key, value in rows.items()))
        broker = self._java("broker", "kafka.Kafka", config)
        try:
            is_up = _wait_for_port(self._port, broker, limit_s) and _wait_for_answer(
                self._port, broker, limit_s
            )
            time.sleep(serves_s if is_up else 0)
        finally:
            broker.terminate()
            broker.wait(60)
        if is_up and not (log_dir / CLEAN_SHUTDOWN).exists():
            raise RuntimeError("the broker has not stopped cleanly:\n" + self.log_text()[-4000:])
        return is_up

    def log_text(self) -> str:
        """Return what the broker has logged since the last call."""
        path = self._folder / "broker.log"
        text = path.read_text(errors="replace") if path.exists() else ""
        path.unlink(missing_ok=True)
        return text

    def _java(self, name: str, main: str, config: Path) -> subprocess.Popen[bytes]:
        logging = self._folder / f"{name}.log4j"
        logging.write_text(self._logging_rows.format(path=self._folder / f"{name}.log"))
        with (self._folder / f"{name}.out").open("ab") as output:
            return subprocess.Popen(
                ["java", "-Xmx1g", f"-Dlog4j.configuration=file:{logging}",
                 "-cp", f"{self._libs}/*", main, str(config)],
                stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip


def _wait_for_answer(port: int, process: subprocess.Popen[bytes], limit_s: float) -> bool:
    """Wait until a broker answers: one that is still starting up cannot be stopped cleanly."""
    end = time.monotonic() + limit_s
    while process.poll() is None and time.monotonic() < end:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), limit_s) as asking:
            asking.sendall(_API_VERSIONS)
            if asking.recv(4):
                # It answers just before its start is over.
                time.sleep(_START_OVER_S)
                return True
        time.sleep(_PAUSE_S)
    return False


def _wait_for_port(port: int, process: subprocess.Popen[bytes], limit_s: float) -> bool:
    """Wait until something listens; False when the process has ended."""
    end = time.monotonic() + limit_s
    while process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            if time.monotonic() > end:
                raise TimeoutError(f"nothing listens on port {port}") from None
            time.sleep(_PAUSE_S)
        else:
            return True
    return False
