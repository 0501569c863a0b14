"""The processes of the exactly-once demo: starts, watches, kills and ends them.

With kills, instances and brokers get SIGKILL in turns, when the number of copied records reaches
evenly spaced points. Each is restarted after `_BACK_MS`, and no second broker is killed before the
first is back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from engine.client.blocking import KafkaClient
from engine.demo.copying import CopyCounts, CopyNames
from engine.demo.exactly_once import CopyPlan, committed_count
from engine.errors import EngineError
from engine.host.child_process import ChildProcess
from engine.host.ports import Entropy
from engine.host.processes import python_command
from engine.json_text import JsonObject

_MODULE: Final = "engine.demo.instance"
_POLL_MS: Final = 50
_COUNT_EVERY_MS: Final = 250
_END_S: Final = 20.0
_BACK_MS: Final = 2_000
_INSTANCE_KILLS: Final = 4
_BROKER_KILLS: Final = 3


class InstanceFailed(EngineError):
    """An instance ended without being killed."""

    def __init__(self, instance: int, reason: str, hint: str | None) -> None:
        super().__init__(f"instance {instance}: {reason}")
        self.instance = instance
        self.reason = reason
        self.hint = hint


class NoProgress(EngineError):
    """The group has stopped committing before the end of the input."""

    hint = (
        "`kctl groups describe` and `kctl transactions list` show what it waits for; or --timeout"
    )

    def __init__(self, done: int, total: int, wait_s: float) -> None:
        super().__init__(f"{done} of {total} records are committed, and none for {wait_s:g} s")
        self.done = done
        self.total = total


class InstanceProcess(Protocol):
    """What this module needs of a child process."""

    @property
    def exit_code(self) -> int | None:
        """Return the exit code of the process, None while it runs."""
        ...

    def lines(self) -> list[bytes]:
        """Return the lines that the process has sent since the last call.

        After `close` they are all up to its end.
        """
        ...

    def close_input(self) -> None:
        """Close the standard input of the process, which makes it end."""
        ...

    def kill(self) -> None:
        """Send SIGKILL to the process."""
        ...

    def close(self, wait_s: float) -> None:
        """Wait until the process ends; kill it after `wait_s` seconds."""
        ...


class Brokers(Protocol):
    """Brokers that can be killed."""

    @property
    def broker_ids(self) -> list[int]:
        """Return the ids of all brokers."""
        ...

    def kill(self, broker_id: int) -> None:
        """Kill a broker."""
        ...

    def restart(self, broker_id: int) -> None:
        """Start a killed broker again."""
        ...


class InstanceTotals(NamedTuple):
    """Totals over all processes of an instance; killed ones count as far as they reported."""

    instance: int
    partitions: tuple[int, ...]
    committed: int
    aborted: int
    kills: int


class ClusterAccess(NamedTuple):
    """Addresses, client properties and timeout for connections to the cluster."""

    bootstrap_servers: str
    properties: Mapping[str, str]
    timeout_ms: int


class KillSchedule(NamedTuple):
    """The source of random choices, the brokers to kill, and a callback for each kill."""

    entropy: Entropy
    brokers: Brokers | None
    on_strike: Callable[[str], None]


def start_process(plan: CopyPlan, instance: int, access: ClusterAccess) -> ChildProcess:
    """Start the child process of an instance, and send it its settings as JSON."""
    names = CopyNames(
        plan.input_topic,
        plan.output_topic,
        plan.group_id,
        plan.transactional_id(instance),
        instance,
    )
    request = {
        **access._asdict(),
        "properties": dict(access.properties),
        "names": names._asdict(),
    }
    return ChildProcess(python_command(_MODULE), json.dumps(request).encode())


class _Instance:
    """An instance with its present process, None after a kill."""

    def __init__(self, number: int, process: InstanceProcess) -> None:
        """`process` is running."""
        self.number = number
        self.process: InstanceProcess | None = process
        self.kills = 0
        #: Monotonic time at which the killed process is restarted.
        self.back_ms = 0
        #: Counts of the killed processes of this instance, and of the present one.
        self._before = CopyCounts()
        self._now = CopyCounts()

    def read(self) -> None:
        """Read the counts that the instance's process has sent since the last call.

        Raises InstanceFailed if it sent an error or has ended.
        """
        process = self.process
        if process is None:
            return
        exit_code = process.exit_code
        for line in process.lines():
            report: JsonObject = json.loads(line)
            if "error" in report:
                raise InstanceFailed(self.number, report["error"], report["hint"])
            self._now = _counts(report)
        if exit_code is not None:
            raise InstanceFailed(self.number, f"ended by itself (exit code {exit_code})", None)

    def read_last(self) -> None:
        """Read the last counts of a process that has ended, and ignore its error."""
        for line in () if self.process is None else self.process.lines():
            report = json.loads(line)
            if "error" not in report:
                self._now = _counts(report)

    def kill(self, back_ms: int) -> None:
        """Kill the process, keep its counts, and schedule its restart at `back_ms` (monotonic)."""
        assert self.process is not None
        self.process.kill()
        self.process = None
        self.kills += 1
        self.back_ms = back_ms
        before, now = self._before, self._now
        self._before = CopyCounts(
            before.records + now.records,
            before.committed + now.committed,
            before.aborted + now.aborted,
        )
        self._now = CopyCounts()

    def totals(self) -> InstanceTotals:
        """Return the totals of the present process and of all killed ones."""
        before, now = self._before, self._now
        return InstanceTotals(
            self.number,
            now.partitions,
            before.committed + now.committed,
            before.aborted + now.aborted,
            self.kills,
        )


def _counts(report: JsonObject) -> CopyCounts:
    """Return the counts that an instance has sent as a JSON report."""
    return CopyCounts(**{**report, "partitions": tuple(report["partitions"])})


class CopyRun:
    """A copy by several processes; `close` ends them all."""

    def __init__(
        self,
        client: KafkaClient,
        plan: CopyPlan,
        start: Callable[[int], InstanceProcess],
        *,
        strikes: KillSchedule | None = None,
        stalled_ms: int,
    ) -> None:
        """`start` starts the process of an instance.

        With `strikes` instances and brokers are killed. The run fails if nothing is committed for
        `stalled_ms`.
        """
        self._client = client
        self._plan = plan
        self._start = start
        self._strikes = strikes
        self._stalled_ms = stalled_ms
        self._instances: list[_Instance] = []
        #: Remaining kills, in order of the number of copied records.
        self._left = (
            [] if strikes is None else plan_kills(plan, has_brokers=strikes.brokers is not None)
        )
        #: The killed broker until it is restarted at `_broker_back_ms` (monotonic), else None.
        self._dead_broker: int | None = None
        self._broker_back_ms = 0

    def run(self, on_progress: Callable[[int, Sequence[InstanceTotals]], None]) -> None:
        """Start the instances and watch them until the group has committed the whole input.

        Errors: InstanceFailed, NoProgress, those of an OffsetFetch request.
        """
        for number in range(self._plan.instance_count):
            self._instances.append(_Instance(number, self._start(number)))
        clock, total = self._client.clock, self._plan.record_count
        done, count_ms = 0, clock.monotonic_ms()
        moved_ms = count_ms
        while done < total:
            now_ms = clock.monotonic_ms()
            for instance in self._instances:
                instance.read()
            if now_ms >= count_ms:
                found = committed_count(self._client, self._plan)
                count_ms = now_ms + _COUNT_EVERY_MS
                moved_ms = clock.monotonic_ms() if found != done else moved_ms
                done = found
                on_progress(done, self.totals())
            if now_ms - moved_ms > self._stalled_ms:
                raise NoProgress(done, total, self._stalled_ms / 1000)
            self._kill_and_restart(done)
            self._client.connections.pause(_POLL_MS)
        self._restart_broker()

    def totals(self) -> list[InstanceTotals]:
        """Return the totals of each instance, by number."""
        return [instance.totals() for instance in self._instances]

    def close(self) -> None:
        """Close the input of all processes, wait for their end, and read their last counts.

        A process reports a transaction after its commit, so the run may end before the report.
        """
        processes = [one.process for one in self._instances if one.process is not None]
        for process in processes:
            process.close_input()
        for process in processes:
            process.close(_END_S)
        for instance in self._instances:
            instance.read_last()

    # Kills

    def _kill_and_restart(self, done: int) -> None:
        """Restart killed processes that are due, and perform the kills that `done` has reached.

        A broker is killed only if no other one is dead.
        """
        if self._strikes is None:
            return
        now_ms = self._client.clock.monotonic_ms()
        for instance in self._instances:
            if instance.process is None and now_ms >= instance.back_ms:
                instance.process = self._start(instance.number)
        if self._dead_broker is not None and now_ms >= self._broker_back_ms:
            self._restart_broker()
        while self._left and done >= self._left[0].at_count:
            if self._left[0].is_broker:
                if self._dead_broker is not None:
                    return
                self._kill_broker(self._strikes, now_ms)
            else:
                self._kill_instance(self._strikes, now_ms)
            del self._left[0]

    def _kill_instance(self, strikes: KillSchedule, now_ms: int) -> None:
        """Kill a random running instance and schedule its restart `_BACK_MS` later."""
        alive = [instance for instance in self._instances if instance.process is not None]
        if alive:
            victim = alive[strikes.entropy.random_below(len(alive))]
            victim.kill(now_ms + _BACK_MS)
            strikes.on_strike(f"instance {victim.number} is killed")

    def _kill_broker(self, strikes: KillSchedule, now_ms: int) -> None:
        """Kill a random broker and schedule its restart `_BACK_MS` later."""
        assert strikes.brokers is not None
        ids = strikes.brokers.broker_ids
        self._dead_broker = ids[strikes.entropy.random_below(len(ids))]
        strikes.brokers.kill(self._dead_broker)
        self._broker_back_ms = now_ms + _BACK_MS
        strikes.on_strike(f"broker {self._dead_broker} is killed")

    def _restart_broker(self) -> None:
        """Restart the killed broker, if there is one."""
        if self._dead_broker is not None and self._strikes is not None:
            assert self._strikes.brokers is not None
            self._strikes.brokers.restart(self._dead_broker)
            self._strikes.on_strike(f"broker {self._dead_broker} is back")
            self._dead_broker = None


class KillPoint(NamedTuple):
    """A kill, due once `at_count` records are committed."""

    at_count: int
    is_broker: bool


def plan_kills(plan: CopyPlan, *, has_brokers: bool) -> list[KillPoint]:
    """Return the kills of instances and brokers in order, evenly spaced over the records to copy.

    Brokers are killed only with `has_brokers`.
    """
    kinds = [False] * _INSTANCE_KILLS
    if has_brokers:
        for number in range(_BROKER_KILLS):
            kinds.insert(2 * number + 1, True)
    share = plan.record_count / (len(kinds) + 1)
    return [KillPoint(int(share * (n + 1)), kind) for n, kind in enumerate(kinds)]
