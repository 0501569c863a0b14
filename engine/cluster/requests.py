"""What a command wants of the process that runs a cluster, and what that answers.

```
command   request.json written ── SIGUSR1 ──> waits for response.json with the same number
process   looks ── carries it out ── response.json
```

Commands come one after the other: they have the turn (`daemon.turn`).

| request.json | {"number": …, "action": "restart", "broker": 2} |
|---|---|
| response.json | {"number": …, "broker": 2, "error": null, "hint": null} |
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from engine.cluster.data_directory import BadClusterFile, DataDirectory
from engine.errors import EngineError
from engine.host import processes
from engine.host.lock_file import is_held
from engine.host.ports import Clock

_POLL_MS = 5
#: What commands exit with when a process does not do in time what it should.
_TIMED_OUT_EXIT = 3


class Action(Enum):
    """What may be wanted of the process of a cluster."""

    RESTART = "restart"
    STOP = "stop"
    ADD = "add"
    REMOVE = "remove"
    RETENTION = "retention"


class ClusterRequest(NamedTuple):
    """What is wanted, of which broker; None for a new one, and where all are meant."""

    number: int
    action: Action
    broker_id: int | None


class ClusterNotRunning(EngineError):
    """A cluster is to do something and does not run."""

    def __init__(self, path: str) -> None:
        super().__init__(f"the cluster in {path} does not run")
        self.hint = f"`kctl cluster start --data {path}` starts it"
        self.path = path


class ClusterRefused(EngineError):
    """The process of a cluster did not do what was wanted, and said why."""

    def __init__(self, reason: str, hint: str | None) -> None:
        super().__init__(reason)
        self.hint = hint
        self.reason = reason


class RequestNotCarriedOut(EngineError):
    """The process of a cluster gave no answer in time; it may be at it still."""

    exit_code = _TIMED_OUT_EXIT

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__(f"the cluster in {path} was not done after {timeout_s:g} s")
        self.hint = f"it goes on: `kctl cluster status --data {path}` shows how far it is"
        self.timeout_s = timeout_s


def ask(
    data: DataDirectory,
    action: Action,
    broker_id: int | None,
    clock: Clock,
    timeout_s: float,
    pause: Callable[[int], None],
) -> int:
    """Have the process of a cluster do something, and return the id of the broker it was done to.

    The id is 0 where all are meant. For who has the turn. Errors: ClusterNotRunning,
    ClusterRefused, RequestNotCarriedOut.
    """
    running = data.running() if is_held(data.lock_path) else None
    if running is None:
        raise ClusterNotRunning(data.path)
    number = clock.wall_ms()
    data.write_request({"number": number, "action": action.value, "broker": broker_id})
    processes.ask_to_look(running.pid)
    deadline_ms = clock.monotonic_ms() + round(timeout_s * 1000)
    while True:
        response = data.read_response()
        if response is not None and response.get("number") == number:
            if response.get("error") is not None:
                raise ClusterRefused(str(response["error"]), response.get("hint"))
            return int(response["broker"])
        if not is_held(data.lock_path):
            raise ClusterNotRunning(data.path)
        if clock.monotonic_ms() > deadline_ms:
            raise RequestNotCarriedOut(data.path, timeout_s)
        pause(_POLL_MS)


def read_request(data: DataDirectory) -> ClusterRequest | None:
    """Return what is wanted; None if nothing is; raises BadClusterFile."""
    content = data.read_request()
    if content is None:
        return None
    try:
        broker_id = content["broker"]
        return ClusterRequest(
            int(content["number"]),
            Action(content["action"]),
            None if broker_id is None else int(broker_id),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BadClusterFile(data.request_path, f"no request: {error}") from error
