"""The place where Spark runs: a local or remote master or a Connect server, with its settings.

| target | the driver | tasks |
|---|---|---|
| `local[N]` | a JVM started by this process | in Python processes of this machine |
| another master | a JVM started by this process | on the executors of that cluster |
| a Connect server | in the server | on the executors of the server |

If tasks may run on other machines, kctl sends itself to them: see `shipping.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from engine.errors import EngineError

LOCAL_MASTER = "local[*]"
#: Settings that `--conf` refuses: there is an option for them, or they would change the rows.
_REFUSED = {
    "spark.master": "--master sets it",
    "spark.remote": "--remote sets it",
    "spark.sql.session.timeZone": "times are shown in UTC",
}


class WrongSparkTarget(EngineError):
    """Options for the place where Spark runs contradict each other, or a setting is malformed."""

    exit_code = 2

    def __init__(self, option: str, rule: str) -> None:
        super().__init__(f"{option}: {rule}")
        self.option = option


class SparkTarget(NamedTuple):
    """A master, or the address of a Connect server, with Spark settings (name, value)."""

    master: str = LOCAL_MASTER
    #: `sc://host:port`; the server has its own master.
    remote: str | None = None
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def is_local(self) -> bool:
        """Return True if tasks run on this machine, with this Python environment."""
        return self.remote is None and self.master.startswith("local")

    def setting(self, name: str) -> str | None:
        """Return the value of a setting of --conf, None if it was not given."""
        return dict(self.settings).get(name)


def parse_spark_target(
    master: str | None, remote: str | None, settings: Iterable[str]
) -> SparkTarget:
    """Return the Spark to use, of --master, --remote and --conf.

    `settings` are `KEY=VALUE` texts. Raises WrongSparkTarget.
    """
    if master is not None and remote is not None:
        raise WrongSparkTarget("--remote", "a Connect server has its own master, without --master")
    if remote is not None and not remote.startswith("sc://"):
        raise WrongSparkTarget("--remote", f"{remote}: expected sc://HOST:PORT")
    return SparkTarget(master or LOCAL_MASTER, remote, tuple(map(_parse_setting, settings)))


def _parse_setting(text: str) -> tuple[str, str]:
    """Parse a `--conf` into name and value; raises WrongSparkTarget."""
    name, equals, value = text.partition("=")
    name = name.strip()
    if not equals or not name.startswith("spark."):
        raise WrongSparkTarget("--conf", f"{text}: expected spark.NAME=VALUE")
    if name in _REFUSED:
        raise WrongSparkTarget("--conf", f"{name}: {_REFUSED[name]}")
    return name, value.strip()
