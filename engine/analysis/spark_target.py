"""The place where Spark runs: a local or remote master or a Connect server, with its settings.

| target | the driver | tasks |
|---|---|---|
| `local[N]` | a JVM of this process | in Python processes of this machine |
| another master | a JVM of this process | on the executors of that cluster |
| a Connect server | in the server | on the executors of the server |

Where tasks may run on other machines, kctl sends itself to them: see `shipping.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from engine.errors import EngineError

LOCAL_MASTER = "local[*]"
#: Settings that another option has, or on which the rows depend.
_REFUSED = {
    "spark.master": "--master sets it",
    "spark.remote": "--remote sets it",
    "spark.sql.session.timeZone": "times are shown in UTC",
}


class WrongSparkTarget(EngineError):
    """Options that say where Spark runs contradict each other, or a setting is none."""

    exit_code = 2

    def __init__(self, option: str, rule: str) -> None:
        super().__init__(f"{option}: {rule}")
        self.option = option


class SparkTarget(NamedTuple):
    """A master or the address of a Connect server, and settings by their names."""

    master: str = LOCAL_MASTER
    #: `sc://host:port`; the server has its own master.
    remote: str | None = None
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def is_local(self) -> bool:
        """Return whether tasks run on this machine, in its environment of Python."""
        return self.remote is None and self.master.startswith("local")

    def setting(self, name: str) -> str | None:
        """Return a setting that was given."""
        return dict(self.settings).get(name)


def spark_target(master: str | None, remote: str | None, settings: Iterable[str]) -> SparkTarget:
    """Return the target that options name; settings are `KEY=VALUE`. Raises WrongSparkTarget."""
    if master is not None and remote is not None:
        raise WrongSparkTarget("--remote", "a Connect server has its own master, without --master")
    if remote is not None and not remote.startswith("sc://"):
        raise WrongSparkTarget("--remote", f"{remote}: expected sc://HOST:PORT")
    return SparkTarget(master or LOCAL_MASTER, remote, tuple(map(_setting, settings)))


def _setting(text: str) -> tuple[str, str]:
    """Return the name and value of a `--conf`; raises WrongSparkTarget."""
    name, equals, value = text.partition("=")
    name = name.strip()
    if not equals or not name.startswith("spark."):
        raise WrongSparkTarget("--conf", f"{text}: expected spark.NAME=VALUE")
    if name in _REFUSED:
        raise WrongSparkTarget("--conf", f"{name}: {_REFUSED[name]}")
    return name, value.strip()
