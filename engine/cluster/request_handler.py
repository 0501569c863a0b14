"""Execution of commands' requests in the process that runs a cluster (`requests.py`).

| request | effect |
|---|---|
| restart | a broker is stopped, after moving its leaderships, and started; a stopped one is only started |
| stop | a broker is stopped, until a restart or the next start of the cluster |
| add | a broker with a new id is added to the plan and started |
| remove | a broker without replicas is stopped, and its files are deleted; others are rejected |
| retention | every running broker deletes the segments that are due |
| compact | every running broker cleans the logs of topics first; the response does not wait for it |
| compaction | every running broker returns the progress of its cleaner |
| metrics | every running broker returns its metrics |

Requests are executed one at a time.
"""  # noqa: E501 - a table

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from engine.cluster.broker_processes import (
    BrokerNotRunning,
    BrokerState,
    check_broker,
)
from engine.cluster.data_directory import DataDirectory, RunningCluster
from engine.cluster.ownership import remove_file, remove_log_dir
from engine.cluster.plan import ClusterPlan, check_plan
from engine.cluster.process import ServedBrokers
from engine.cluster.requests import (
    OF_ALL,
    REPEATED,
    Action,
    ClusterRequest,
    last_number,
    read_request,
)
from engine.cluster.served_logs import TooManyBrokers
from engine.errors import EngineError
from engine.host.coroutine import drive
from engine.host.ports import Files
from engine.host.promise import Promise
from engine.limits import PARTITIONS_NAMED_MAX
from engine.znode.client import ZnodeClient
from engine.znode.errors import NoNode
from engine.znode.paths import TOPICS, topic_path
from engine.znode.values import decode_topic

_log = logging.getLogger("kafka.cluster")


class Members(ServedBrokers, Protocol):
    """The brokers of a cluster, in this process or in others."""

    def addresses(self) -> dict[int, str]:
        """Return the addresses of the running brokers for clients, by id."""
        ...

    async def start_again(self, broker_id: int) -> None:
        """Start a broker of the plan that does not run; return once it has cluster metadata."""
        ...

    async def stop(self, broker_id: int) -> None:
        """Stop a running broker, which moves its leaderships first."""
        ...

    async def carry_out(self, request: ClusterRequest) -> dict[int, list[dict[str, object]]]:
        """Execute a request on all running brokers; return each broker's rows."""
        ...


class BrokerHoldsReplicas(EngineError):
    """A broker cannot be removed, because it has replicas."""

    def __init__(self, broker_id: int, partitions: list[str]) -> None:
        """Create the error; the message names some of the partitions."""
        shown = ", ".join(partitions[:PARTITIONS_NAMED_MAX])
        more = len(partitions) - PARTITIONS_NAMED_MAX
        super().__init__(
            f"broker {broker_id} holds replicas of {len(partitions)} partitions: {shown}"
            + (f" and {more} more" if more > 0 else "")
        )
        self.hint = "move them to other brokers first, or delete their topics"
        self.broker_id = broker_id
        self.partitions = partitions


class LastBroker(EngineError):
    """The only broker of a cluster cannot be removed."""

    def __init__(self, path: str, broker_id: int) -> None:
        super().__init__(f"broker {broker_id} is the last one of the cluster in {path}")
        self.hint = f"`kctl cluster destroy --data {path}` removes the cluster"
        self.broker_id = broker_id


class ClusterSupervisor:
    """Executes commands' requests on the brokers of a running cluster."""

    def __init__(
        self,
        data: DataDirectory,
        files: Files,
        plan: ClusterPlan,
        members: Members,
        client: Callable[[], ZnodeClient],
        *,
        pid: int,
        znode_address: str,
    ) -> None:
        """Create the executor of commands' requests in the cluster's process.

        `client` opens a session with the metadata store at `znode_address`.
        """
        self.plan = plan
        self._pid = pid
        self._znode_address = znode_address
        self._data = data
        self._files = files
        self._members = members
        self._client = client
        #: Whether a request is being executed; the next one is read after it.
        self._is_busy = False
        #: Number of the last executed request, also by an earlier process: it is not repeated.
        self._done = last_number(data, data.response_path)
        #: Rows of the brokers for the response to the last request.
        self._logs: dict[int, list[dict[str, object]]] = {}

    def poll(self) -> None:
        """Execute the pending request of a command, unless another one is in progress."""
        if self._is_busy:
            return
        try:
            request = read_request(self._data, self._data.request_path)
        except EngineError as error:
            _log.error("%s", error)
            return
        if request is None or request.number == self._done:
            return
        self._is_busy, self._done = True, request.number
        if request.action not in REPEATED:
            # Watching commands repeat other requests, which are not logged.
            _log.info("asked to %s broker %s", request.action.value, request.broker_id or "")
        work = drive(self._carry_out(request))
        work.watch(lambda: self._respond(request, work))

    async def _carry_out(self, request: ClusterRequest) -> int:
        """Execute a request; return the id of the affected broker, 0 for all brokers."""
        self._logs = {}
        if request.action in OF_ALL:
            self._logs = await self._members.carry_out(request)
            return 0
        if request.action is Action.ADD:
            return await self._add()
        broker_id = request.broker_id
        assert broker_id is not None, "a broker that is there has an id"
        check_broker(self._data, self.plan, broker_id)
        is_running = broker_id in self._members.addresses()
        if request.action is Action.REMOVE:
            await self._remove(broker_id, is_running=is_running)
            return broker_id
        if is_running:
            await self._members.stop(broker_id)
        elif request.action is Action.STOP:
            raise BrokerNotRunning(self._data.path, broker_id, BrokerState.STOPPED)
        if request.action is Action.RESTART:
            await self._members.start_again(broker_id)
        return broker_id

    async def _add(self) -> int:
        """Add a broker with the next id and start it; if it does not start, restore the plan.

        Raises TooManyBrokers in a cluster that serves copied log directories, which has one broker.
        """
        plan, broker_id = self.plan.with_one_more()
        if self._files.exists(self._data.served_path):
            raise TooManyBrokers(plan.broker_count)
        check_plan(plan)
        before, self.plan = self.plan, plan
        # A separate process reads the plan from this file.
        self._data.write_plan(plan)
        try:
            await self._members.start_again(broker_id)
        except BaseException:
            self.plan = before
            self._data.write_plan(before)
            raise
        return broker_id

    async def _remove(self, broker_id: int, *, is_running: bool) -> None:
        """Stop a broker and delete its directories; raises LastBroker, BrokerHoldsReplicas."""
        if self.plan.broker_count == 1:
            raise LastBroker(self._data.path, broker_id)
        client = self._client()
        await client.connect()
        try:
            held = await read_replicas_on(client, broker_id)
        finally:
            await client.close()
        if held:
            raise BrokerHoldsReplicas(broker_id, held)
        if is_running:
            await self._members.stop(broker_id)
        self.plan = self.plan.without(broker_id)
        self._data.write_plan(self.plan)
        for path in self._data.broker_paths(broker_id, self.plan.log_dir_count):
            for left in remove_log_dir(self._files, path):
                _log.warning("%s is not broker %d's and stays", left, broker_id)
        for path in self._data.broker_files(broker_id):
            remove_file(self._files, path)

    def _respond(self, request: ClusterRequest, work: Promise[int]) -> None:
        """Write the response to a request, and check for the next one."""
        self._is_busy = False
        try:
            broker_id, error = work.result(), None
        except EngineError as failure:
            broker_id, error = request.broker_id or 0, failure
            _log.error("broker %s: %s", request.broker_id or "", failure)
        self.write_running()
        self._data.write_message(
            self._data.response_path,
            {
                "number": request.number,
                "broker": broker_id,
                "error": None if error is None else str(error),
                "hint": None if error is None else error.hint,
                "logs": {str(key): rows for key, rows in self._logs.items()},
            },
        )
        # A command that gave up waiting may have been followed by another.
        self.poll()

    def write_running(self) -> str:
        """Write the running brokers to running.json; return their addresses."""
        addresses = sorted(self._members.addresses().items())
        servers = ",".join(address for _, address in addresses)
        brokers = {str(broker_id): address for broker_id, address in addresses}
        self._data.write_running(RunningCluster(self._pid, servers, brokers, self._znode_address))
        return servers


async def read_replicas_on(client: ZnodeClient, broker_id: int) -> list[str]:
    """Return the names of the partitions that have a replica on a broker, or are adding one."""
    held = []
    for topic in sorted(await client.children(TOPICS)):
        path = topic_path(topic)
        try:
            assignment = decode_topic((await client.get(path))[0], path)
        except NoNode:
            # The topic was deleted meanwhile.
            continue
        held += [
            f"{topic}-{partition}"
            for partition, replicas in assignment.partitions.items()
            if broker_id in replicas.replicas
        ]
    return held
