"""Implementation of `kctl cluster partition|slow|heal`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from engine.cluster import daemon
from engine.cluster.data_directory import DataDirectory
from engine.cluster.network_faults import change_faults
from engine.cluster.plan import ClusterPlan
from engine.host.link_faults import STORE, LinkFaults, SlowPlace, place_order
from engine.host.real import RealClock, RealFiles
from engine.limits import LINK_DELAY_MS_MAX
from kctl import exits
from kctl.arguments import UnreadableArgument
from kctl.commands.cluster.brokers import read_directory_and_plan
from kctl.console import notify

_DELAY = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)(ms|s)")
_LOSS = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,4})?)%")
_IN_MS = {"ms": 1, "s": 1000}


def partition_brokers(groups: list[str], data: str | None, timeout_s: float) -> int:
    """Cut the connections between groups of brokers (`kctl cluster partition`).

    Replaces an earlier partition. Each group is a list of broker ids, separated by commas, and may
    have `store`. Clients still reach every broker. Returns the exit code; errors:
    UnreadableArgument.
    """
    directory, plan = read_directory_and_plan(data)
    parted = [_group(plan, group) for group in groups]
    _check_groups(parted)
    faults = _change(
        directory, plan, lambda faults: faults.with_partition(parted), timeout_s=timeout_s
    )
    named = [_group_text(group) for group in faults.groups]
    notify(f"{' and '.join(named)} do not reach each other; clients reach every broker")
    everywhere = _places_in_no_group(plan, faults)
    if everywhere:
        notify(f"in no group, and reached by all: {', '.join(everywhere)}")
    return exits.OK


def slow_links(
    place: str, delay: str | None, loss: str | None, data: str | None, timeout_s: float
) -> int:
    """Delay and drop frames that a broker or the store sends and receives; returns the exit code.

    `place` is a broker id or `store`; `delay` is text as 50ms, `loss` text as 1%. None counts as 0.
    Errors: UnreadableArgument.
    """
    directory, plan = read_directory_and_plan(data)
    of = _parse_place(plan, place)
    if delay is None and loss is None:
        raise UnreadableArgument("a slow link", place, "--delay, --loss or both")
    made = SlowPlace(
        0 if delay is None else _parse_delay_ms(delay), 0.0 if loss is None else _parse_loss(loss)
    )
    _change(directory, plan, lambda faults: faults.with_slow(of, made), timeout_s=timeout_s)
    if not made.delay_ms and not made.loss:
        notify(f"{_title(of)} is as fast as the others")
        return exits.OK
    notify(
        f"{_title(of)}: {made.delay_ms} ms more for each packet to and from it, "
        f"{100 * made.loss:g}% lost"
    )
    return exits.OK


def heal_network(data: str | None, timeout_s: float) -> int:
    """Remove all faults from the links between brokers; returns the exit code."""
    directory, plan = read_directory_and_plan(data)
    _change(directory, plan, lambda _faults: LinkFaults(), timeout_s=timeout_s)
    notify("the network has no faults")
    return exits.OK


def _change(
    directory: DataDirectory,
    plan: ClusterPlan,
    change: Callable[[LinkFaults], LinkFaults],
    *,
    timeout_s: float,
) -> LinkFaults:
    """Apply `change` to the stored link faults, under their lock, and return the new faults."""
    lock_path = directory.network_lock_path
    with daemon.hold_start_lock(
        directory, RealFiles(), RealClock(), timeout_s, _pause, lock_path=lock_path
    ):
        return change_faults(directory, plan, change, RealClock(), timeout_s, _pause)


def _group(plan: ClusterPlan, text: str) -> list[str]:
    """Parse one side of a partition, such as `1,2,store`; raises UnreadableArgument."""
    return [_parse_place(plan, place.strip()) for place in text.split(",")]


def _parse_place(plan: ClusterPlan, place: str) -> str:
    """Return the normalized broker id, or `store`; raises UnreadableArgument for other texts.

    `10` and `010` are the same broker.
    """
    ids = plan.broker_ids()
    if place == STORE:
        return place
    if place.isascii() and place.isdigit() and len(place) <= 10 and int(place) in ids:
        return str(int(place))
    known = ", ".join(map(str, ids))
    raise UnreadableArgument("a broker of the cluster", place, f"one of {known}, or {STORE}")


def _check_groups(groups: list[list[str]]) -> None:
    """Raise UnreadableArgument for fewer than two groups, or a broker in several groups."""
    if len(groups) < 2:
        raise UnreadableArgument("a partition", ",".join(groups[0]), "two groups or more")
    seen: set[str] = set()
    for place in (place for group in groups for place in group):
        if place in seen:
            raise UnreadableArgument("a partition", place, "each broker once, in one group")
        seen.add(place)


def _parse_delay_ms(text: str) -> int:
    """Parse a delay such as 50ms or 1.5s into ms; raises UnreadableArgument."""
    expected = f"whole milliseconds up to {LINK_DELAY_MS_MAX // 1000}s, such as 50ms or 1.5s"
    match = _DELAY.fullmatch(text)
    if match is None:
        raise UnreadableArgument("a delay", text, expected)
    delay_ms = float(match[1]) * _IN_MS[match[2]]
    if not delay_ms.is_integer() or delay_ms > LINK_DELAY_MS_MAX:
        raise UnreadableArgument("a delay", text, expected)
    return int(delay_ms)


def _parse_loss(text: str) -> float:
    """Parse a percentage such as 1% into a share from 0 to 1; raises UnreadableArgument."""
    match = _LOSS.fullmatch(text)
    if match is None or float(match[1]) > 100:
        raise UnreadableArgument(
            "a loss", text, "a share of the packets in 0% ... 100%, such as 1%"
        )
    return float(match[1]) / 100


def _group_text(group: frozenset[str]) -> str:
    """Return a group such as `1,2,store`, sorted by broker id."""
    return ",".join(sorted(group, key=place_order))


def _places_in_no_group(plan: ClusterPlan, faults: LinkFaults) -> list[str]:
    """Return the brokers, and `store`, that are in no group, so that every group reaches them."""
    inside = {place for group in faults.groups for place in group}
    places = [*map(str, plan.broker_ids()), STORE]
    return [place for place in places if place not in inside]


def _title(place: str) -> str:
    """Return a broker, given by its id, or the store as the subject of a message."""
    return "the metadata store" if place == STORE else f"broker {place}"


def _pause(duration_ms: int) -> None:
    """Sleep; called while waiting for the lock and for brokers to apply the faults."""
    time.sleep(duration_ms / 1000)
