"""Requests of commands to the process that runs a cluster, and its responses, as files.

```
command   write request.json ── SIGUSR1 ──> wait for response.json with the same number
process   read it ── execute it ── write response.json
```

Commands are serialised by a lock (`hold_start_lock`). Each uses the number after the last one,
independent of the clock; the process executes a request unless its number is that of the last one.

| request.json | {"number": …, "action": "restart", "broker": 2, "topics": null} |
|---|---|
| response.json | {"number": …, "broker": 2, "error": null, "hint": null, "logs": {}} |

`logs` are the rows that each broker returns, by its id, for a request to all brokers: its logs, or
its metrics. The process sends requests to brokers in separate processes in the same way:

| broker-<id>.request | {"number": …, "action": "compact", "broker": null, "topics": ["t"]} |
|---|---|
| broker-<id>.response | {"number": …, "logs": […]} |
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from engine.cluster.data_directory import BadClusterFile, DataDirectory
from engine.errors import EngineError
from engine.host import processes
from engine.host.lock_file import is_held
from engine.host.ports import Clock
from engine.json_text import JsonObject

# Commands import this module, and need neither brokers nor logs.
if TYPE_CHECKING:
    from engine.broker.broker import Broker
    from engine.log.cleaner.compaction_state import LogCompaction
    from engine.timing.histogram import MetricValue

_POLL_MS = 5
#: Exit code of commands after a time-out.
_TIMED_OUT_EXIT = 3


class Action(Enum):
    """The actions that a command can request from a cluster's process."""

    RESTART = "restart"
    STOP = "stop"
    ADD = "add"
    REMOVE = "remove"
    RETENTION = "retention"
    #: Clean the logs of topics first, and return the progress.
    COMPACT = "compact"
    #: Return the progress of the cleaners.
    COMPACTION = "compaction"
    #: Return the metrics of brokers.
    METRICS = "metrics"


#: Actions on all running brokers.
OF_ALL = frozenset({Action.RETENTION, Action.COMPACT, Action.COMPACTION, Action.METRICS})

#: Requests that a watching command repeats, which are not logged.
REPEATED = frozenset({Action.COMPACTION, Action.METRICS})


class ClusterRequest(NamedTuple):
    """An action and its broker; None for a new broker, and for actions on all brokers.

    `topics` None means all topics.
    """

    number: int
    action: Action
    broker_id: int | None
    topics: tuple[str, ...] | None = None

    def as_message(self) -> JsonObject:
        """Return the content of the request's file."""
        return {
            "number": self.number,
            "action": self.action.value,
            "broker": self.broker_id,
            "topics": None if self.topics is None else list(self.topics),
        }


class ClusterNotRunning(EngineError):
    """A request needs a running cluster."""

    def __init__(self, path: str) -> None:
        super().__init__(f"the cluster in {path} does not run")
        self.hint = f"`kctl cluster start --data {path}` starts it"
        self.path = path


class ClusterRefused(EngineError):
    """The process of a cluster rejected a request, with the reason."""

    def __init__(self, reason: str, hint: str | None) -> None:
        super().__init__(reason)
        self.hint = hint
        self.reason = reason


class RequestNotCarriedOut(EngineError):
    """The process of a cluster did not respond in time; it may still execute the request."""

    exit_code = _TIMED_OUT_EXIT

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__(f"the cluster in {path} was not done after {timeout_s:g} s")
        self.hint = f"it goes on: `kctl cluster status --data {path}` shows how far it is"
        self.timeout_s = timeout_s


def request_action(
    data: DataDirectory,
    action: Action,
    broker_id: int | None,
    clock: Clock,
    timeout_s: float,
    pause: Callable[[int], None],
) -> int:
    """Request an action of a cluster's process; return the id of the affected broker.

    The id is 0 for all brokers. The caller must hold the start lock. Raises ClusterNotRunning,
    ClusterRefused, RequestNotCarriedOut.
    """
    request = ClusterRequest(next_number(data), action, broker_id)
    return int(_send_and_await(data, request, clock, timeout_s, pause)["broker"])


def request_compaction(
    data: DataDirectory,
    clock: Clock,
    timeout_s: float,
    pause: Callable[[int], None],
    *,
    topics: Collection[str] | None = None,
    begins: bool = False,
) -> dict[int, list[LogCompaction]]:
    """Return the compacted logs of each running broker; `begins` starts their cleaning.

    Raises the errors of `request_action`, and BadClusterFile.
    """
    from engine.log.cleaner.compaction_state import decode_states

    action = Action.COMPACT if begins else Action.COMPACTION
    wanted = None if topics is None else tuple(sorted(topics))
    request = ClusterRequest(next_number(data), action, None, wanted)
    response = _send_and_await(data, request, clock, timeout_s, pause)
    try:
        return {int(key): decode_states(rows) for key, rows in response["logs"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadClusterFile(data.response_path, f"no logs: {error}") from error


def request_metrics(
    data: DataDirectory, clock: Clock, timeout_s: float, pause: Callable[[int], None]
) -> dict[int, dict[str, MetricValue]]:
    """Return the metrics of each running broker, by their object names in Kafka's JMX.

    Raises the errors of `request_action`, and BadClusterFile.
    """
    from engine.broker.metric_text import decode_metrics

    request = ClusterRequest(next_number(data), Action.METRICS, None)
    response = _send_and_await(data, request, clock, timeout_s, pause)
    try:
        return {
            int(key): decode_metrics("\n".join(row["gauges"] for row in rows))
            for key, rows in response["logs"].items()
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadClusterFile(data.response_path, f"no metrics: {error}") from error


def next_number(data: DataDirectory) -> int:
    """Return the number for a new request: above those of the last request and response."""
    return 1 + max(last_number(data, data.request_path), last_number(data, data.response_path))


def last_number(data: DataDirectory, path: str) -> int:
    """Return the number of a request or response, 0 if there is none or it is unreadable."""
    try:
        content = data.read_message(path) or {}
        return max(int(content.get("number", 0)), 0)
    except (BadClusterFile, TypeError, ValueError, OverflowError):
        return 0


def _send_and_await(
    data: DataDirectory,
    request: ClusterRequest,
    clock: Clock,
    timeout_s: float,
    pause: Callable[[int], None],
) -> JsonObject:
    """Write a request, signal the cluster's process, and return its response.

    Raises ClusterNotRunning, ClusterRefused (the request failed) or RequestNotCarriedOut
    (time-out).
    """
    running = data.running() if is_held(data.lock_path) else None
    if running is None:
        raise ClusterNotRunning(data.path)
    data.write_message(data.request_path, request.as_message())
    processes.request_poll(running.pid)
    deadline_ms = clock.monotonic_ms() + round(timeout_s * 1000)
    while True:
        response = data.read_message(data.response_path)
        if response is not None and response.get("number") == request.number:
            if response.get("error") is not None:
                raise ClusterRefused(str(response["error"]), response.get("hint"))
            return response
        if not is_held(data.lock_path):
            raise ClusterNotRunning(data.path)
        if clock.monotonic_ms() > deadline_ms:
            raise RequestNotCarriedOut(data.path, timeout_s)
        pause(_POLL_MS)


def read_request(data: DataDirectory, path: str) -> ClusterRequest | None:
    """Return the request in a file, None if there is none; raises BadClusterFile."""
    content = data.read_message(path)
    if content is None:
        return None
    try:
        broker_id, topics = content["broker"], content.get("topics")
        return ClusterRequest(
            int(content["number"]),
            Action(content["action"]),
            None if broker_id is None else int(broker_id),
            None if topics is None else tuple(map(str, topics)),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BadClusterFile(path, f"no request: {error}") from error


async def carry_out(broker: Broker, request: ClusterRequest) -> list[JsonObject]:
    """Execute a command's request on one broker; return its logs or metrics as JSON values."""
    from engine.broker.metric_text import encode_metrics
    from engine.log.cleaner.compaction_state import encode_states

    if request.action is Action.RETENTION:
        await broker.clean_up_logs()
        return []
    if request.action is Action.METRICS:
        return [{"gauges": encode_metrics(await broker.metrics())}]
    if request.action is Action.COMPACT:
        broker.clean_logs_soon(request.topics)
    return encode_states(await broker.compaction())


async def answer_member(data: DataDirectory, broker_id: int, broker: Broker) -> None:
    """Execute the supervisor's request to a broker in a separate process, and respond.

    A request that has a response is not repeated. Raises BadClusterFile.
    """
    request = read_request(data, data.member_request_path(broker_id))
    answered = last_number(data, data.member_response_path(broker_id))
    if request is not None and request.number != answered:
        content = {"number": request.number, "logs": await carry_out(broker, request)}
        data.write_message(data.member_response_path(broker_id), content)
