"""The faults of a cluster's network: how a command sets them and processes apply them.

```
command   write network.json ── SIGUSR1 to each process ──> wait until each has acknowledged it
process   read it ── set its links ── write network.done, broker-<id>.network
heal      the same without faults, then all these files are removed
```

| network.json | {"number": 3, "groups": [["1", "2"], ["3", "store"]], "slow": {"2": {"delay_ms": 50, "loss": 0.01}}} |
|---|---|
| network.done, broker-&lt;id&gt;.network | {"number": 3} |

`requests.py` is not used: a request there may wait for a connection that a fault blocks, and faults
must be changeable meanwhile. A process that starts applies the present faults; a paused one applies
them when it is resumed. They end with the cluster: a new start has none.

Each process applies the faults to the connections that it opens, in both directions; the process
with the metadata store applies those of connections to the store.
"""  # noqa: E501 - a table

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from engine.cluster.broker_processes import BrokerState, process_state
from engine.cluster.data_directory import BadClusterFile, DataDirectory
from engine.cluster.plan import ClusterPlan
from engine.cluster.requests import ClusterNotRunning, RequestNotCarriedOut
from engine.host import processes
from engine.host.link_faults import LinkFaults, decode_faults, encode_faults
from engine.host.lock_file import is_held
from engine.host.network_links import PlaceLinks
from engine.host.ports import Clock

_log = logging.getLogger("kafka.cluster")
_POLL_MS = 5


def read_faults(data: DataDirectory) -> LinkFaults:
    """Return the network faults that are set for a cluster; raises BadClusterFile."""
    return _read_faults(data)[1]


def _read_faults(data: DataDirectory) -> tuple[int, LinkFaults]:
    """Return the number of the last change of the faults, 0 without one, and the faults."""
    content = data.read_message(data.network_path)
    if content is None:
        return 0, LinkFaults()
    try:
        return int(content["number"]), decode_faults(content)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadClusterFile(data.network_path, f"no faults of a network: {error}") from error


def apply_faults(data: DataDirectory, links: PlaceLinks, done_path: str) -> None:
    """Apply the stored network faults to this process's links, and confirm them in `done_path`.

    Unreadable faults are logged, and the present ones stay.
    """
    try:
        number, faults = _read_faults(data)
    except BadClusterFile as error:
        _log.error("%s", error)
        return
    if faults != links.faults:
        _log.info("the network: %s", describe_faults(faults) or "healed")
        links.set_faults(faults)
    if number:
        data.write_message(done_path, {"number": number})


def describe_faults(faults: LinkFaults) -> str:
    """Return the faults as a line of text, "" without any."""
    content = encode_faults(faults)
    parts = [" | ".join(",".join(group) for group in content["groups"])]
    parts += [
        f"{place} slow: {slow.delay_ms} ms, {100 * slow.loss:g}% lost"
        for place, slow in faults.slow.items()
    ]
    return "; ".join(part for part in parts if part)


def change_faults(
    data: DataDirectory,
    plan: ClusterPlan,
    change: Callable[[LinkFaults], LinkFaults],
    clock: Clock,
    timeout_s: float,
    pause: Callable[[int], None],
) -> LinkFaults:
    """Change the faults, and return them once every running process has applied them.

    The caller must hold the lock of faults. Raises ClusterNotRunning, RequestNotCarriedOut,
    BadClusterFile.
    """
    running = data.running() if is_held(data.lock_path) else None
    if running is None:
        raise ClusterNotRunning(data.path)
    number, before = _read_faults(data)
    faults = change(before)
    number += 1
    data.write_message(data.network_path, {"number": number, **encode_faults(faults)})
    awaited: dict[str, Callable[[], bool]] = {
        data.network_done_path: partial(is_held, data.lock_path)
    }
    processes.request_poll(running.pid)
    for broker_id in plan.broker_ids() if plan.is_in_processes else ():
        state, member = process_state(data, broker_id)
        if member is None or member.address is None:
            continue
        processes.request_poll(member.pid)
        if state is BrokerState.RUNNING:
            path = data.member_network_path(broker_id)
            awaited[path] = partial(_is_running, data, broker_id)
    deadline_ms = clock.monotonic_ms() + round(timeout_s * 1000)
    for path, is_there in awaited.items():
        while _read_applied_number(data, path) < number and is_there():
            if clock.monotonic_ms() > deadline_ms:
                raise RequestNotCarriedOut(data.path, timeout_s)
            pause(_POLL_MS)
    if not faults.is_any():
        data.remove_network(plan.broker_ids())
    return faults


def _is_running(data: DataDirectory, broker_id: int) -> bool:
    """Return True if a broker still runs, so that it may still confirm a change."""
    return process_state(data, broker_id)[0] is BrokerState.RUNNING


def _read_applied_number(data: DataDirectory, path: str) -> int:
    """Return the number of the last change that a process applied, 0 if it cannot be read."""
    try:
        content = data.read_message(path) or {}
        return int(content.get("number", 0))
    except (BadClusterFile, TypeError, ValueError):
        return 0
