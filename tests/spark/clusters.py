"""A standalone cluster of Spark on loopback whose tasks run in a Python without kctl.

The master and the workers are those of the installed PySpark, on ports that the system chooses.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

import pyspark

#: What PySpark's tasks need to pass Arrow data, and nothing of kctl's own.
_OF_TASKS = (
    "pyspark", "pyarrow", "numpy", "numpy.libs", "pandas", "pandas.libs", "py4j", "dateutil",
    "pytz", "tzdata", "six.py", "grpc", "grpc_status", "google", "zstandard",
)  # fmt: skip
#: JVMs that live for a minute spend it on compiling otherwise.
_QUICK = "-XX:TieredStopAtLevel=1"
_DEADLINE_S = 300
_Seen = TypeVar("_Seen")
_SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"


def python_of_tasks(folder: Path) -> Path:
    """Return a Python that can run tasks of PySpark's and has no other package."""
    venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
    source = Path(pyspark.__file__).parent.parent
    (target,) = (folder / "lib").glob("python*/site-packages")
    for name in _OF_TASKS:
        if (source / name).exists():
            (target / name).symlink_to(source / name)
    return folder / "bin" / "python"


def awaited(look: Callable[[], _Seen | None]) -> _Seen:
    """Look until there is something, and return that."""
    end_s = time.monotonic() + _DEADLINE_S
    while (seen := look()) is None:
        assert time.monotonic() < end_s
        time.sleep(0.02)
    return seen


class Daemon:
    """One process of Spark's, with all that it starts."""

    def __init__(self, log: Path, words: list[str], environment: dict[str, str]) -> None:
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [_SPARK_CLASS, *words],
                cwd=log.parent,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def awaited(self, pattern: str) -> str:
        """Return what a pattern's group has in the process's log, once it is there."""

        def found() -> str | None:
            match = re.search(pattern, self._log.read_text("utf-8", "replace"))
            assert match or self._process.poll() is None, self._log.read_text("utf-8", "replace")
            return match[1] if match else None

        return awaited(found)

    def kill(self) -> None:
        """End it and what it started, without a word."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


class Cluster(NamedTuple):
    """A master's address, its workers, and the Python of tasks."""

    master: str
    workers: list[Daemon]
    python: Path
    environment: dict[str, str]
    folder: Path

    @property
    def options(self) -> list[str]:
        """Return the options of kctl for a driver on loopback."""
        settings = {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.pyspark.python": str(self.python),
            "spark.default.parallelism": "12",
            "spark.executor.extraJavaOptions": _QUICK,
            "spark.sql.shuffle.partitions": "2",
        }
        return ["--master", self.master, *(f"--conf={k}={v}" for k, v in settings.items())]

    def start_worker(self) -> Daemon:
        """Start a worker of one core, known to the master on return."""
        number = len(self.workers)
        # Each has a host of its own: Spark starts no second attempt on the host of the first.
        host = f"127.0.0.{number + 1}"
        words = ["--host", host, "--port", "0", "--webui-port", "0", "--cores", "1"]
        worker = Daemon(
            self.folder / f"worker-{number}.log",
            ["org.apache.spark.deploy.worker.Worker", *words, "--memory", "1g",
             "--work-dir", str(self.folder / f"work-{number}"), self.master],
            self.environment,
        )  # fmt: skip
        self.workers.append(worker)
        worker.awaited(r"(Successfully registered with master)")
        return worker


def clean_environment() -> dict[str, str]:
    """Return the environment of daemons: nothing in it leads to kctl."""
    left_out = ("PYTHONPATH", "PYSPARK_PYTHON", "VIRTUAL_ENV", "SPARK_HOME")
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    return {**kept, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_JAVA_OPTS": _QUICK}


@contextmanager
def spark_cluster(folder: Path) -> Iterator[Cluster]:
    """Yield a cluster of two workers, and end it."""
    python = python_of_tasks(folder / "python")
    environment = clean_environment()
    tried = subprocess.run(
        [python, "-c", "import pyspark, pyarrow; import engine"],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "No module named 'engine'" in tried.stderr, tried.stderr
    words = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    master = Daemon(
        folder / "master.log", ["org.apache.spark.deploy.master.Master", *words], environment
    )
    cluster = Cluster("", [], python, environment, folder)
    try:
        address = master.awaited(r"Starting Spark master at (spark://[\w.]+:\d+)")
        cluster = cluster._replace(master=address)
        cluster.start_worker()
        cluster.start_worker()
        yield cluster
    finally:
        for worker in cluster.workers:
            worker.kill()
        master.kill()


class Run:
    """A call of kctl in a process of its own."""

    def __init__(self, *words: object) -> None:
        self._process = subprocess.Popen(
            [Path(sys.executable).parent / "kctl", *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    @property
    def is_running(self) -> bool:
        """Return whether it has not ended."""
        return self._process.poll() is None

    def result(self) -> str:
        """Return what it printed, once it has ended well."""
        out, err = self._process.communicate()
        assert 0 == self._process.returncode, err
        return out

    def kill(self) -> None:
        """End it without a word."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()
