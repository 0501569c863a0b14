"""Requests the facts of findings about consumers, by a deadline even if brokers hang.

1. The leaders for the producers of their partitions (DescribeProducers, from 2.8 on), and all
   brokers for the groups that they coordinate; all at the same time, except silent brokers.
2. If a transaction is open and idle: the coordinators, for whether they have it open.
3. The coordinators of groups without members, for their committed offsets; then the leaders for the
   end offsets.

A request that fails, or is not authorized, leaves its facts out: the findings about brokers report
a silent broker.

Source: KIP-664, KIP-518.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from engine.client.blocking import KafkaClient
from engine.client.connection import Call, Response
from engine.client.groups import commits_call, commits_of, listings_of
from engine.client.metadata import ClusterView, leader_of
from engine.client.offsets import LATEST, offsets_call, offsets_of
from engine.client.reader_findings import ReaderFacts, ReaderThresholds, idle_transactions
from engine.client.settings import Address
from engine.client.transactions import (
    ActiveProducer,
    find_hanging,
    producers_call,
    producers_of,
)
from engine.errors import EngineError
from engine.model import TopicPartition
from engine.wire import messages

_EMPTY: Final = "Empty"


def gather_reader_facts(
    client: KafkaClient,
    view: ClusterView,
    silent: Collection[int],
    thresholds: ReaderThresholds,
    deadline_ms: int,
) -> ReaderFacts:
    """Request active producers and the lags of groups without members, until `deadline_ms`.

    The deadline is monotonic. Brokers in `silent` have not responded before, and get no requests;
    if there is one, hanging transactions are not searched.
    """
    gathering = _Gathering(client, view, frozenset(silent), deadline_ms)
    producers = gathering.producers()
    now_ms = client.clock.wall_ms()
    idle_ms = thresholds.idle_transaction_ms
    every = [one for of_partition in producers.values() for one in of_partition]
    idle = idle_transactions(every, now_ms, idle_ms)
    hanging: frozenset[tuple[TopicPartition, int]] | None = None
    # If a coordinator does not answer, all its open transactions would seem to hang.
    if idle and not silent:
        try:
            found = find_hanging(client, idle, idle_for_ms=idle_ms)
            hanging = frozenset((h.producer.partition, h.producer.producer_id) for h in found)
        except EngineError:
            hanging = None
    return ReaderFacts(producers, hanging, gathering.lags(), now_ms)


class _Gathering:
    """Requests to all brokers of one view, except silent ones."""

    def __init__(
        self, client: KafkaClient, view: ClusterView, silent: frozenset[int], deadline_ms: int
    ) -> None:
        """Bound all requests by `deadline_ms` (monotonic); brokers in `silent` get none."""
        self._client = client
        self._view = view
        self._deadline_ms = deadline_ms
        self._addresses = {
            id_: broker.address for id_, broker in view.brokers.items() if id_ not in silent
        }

    def producers(self) -> dict[TopicPartition, list[ActiveProducer]]:
        """Return the active producers of each partition.

        Partitions without a response are left out.
        """
        calls = {
            leader: (self._addresses[leader], producers_call(led))
            for leader, led in self._by_leader(self._partitions()).items()
        }
        found: dict[TopicPartition, list[ActiveProducer]] = {}
        for response in self._exchange(calls).values():
            for key, producers in producers_of(response.message).items():
                if not isinstance(producers, EngineError):
                    found[key] = producers
        return found

    def lags(self) -> dict[str, dict[TopicPartition, int]]:
        """Return by group id the lag in each partition, for groups without members.

        Only partitions of the view's topics count.
        """
        call = Call("ListGroups", messages.ListGroupsRequest())
        listed = self._exchange({id_: (to, call) for id_, to in self._addresses.items()})
        empty = [
            (group.group_id, self._addresses[broker_id])
            for broker_id, response in listed.items()
            for group in listings_of(response.message, broker_id)
            if group.state == _EMPTY
        ]
        calls = {n: (to, commits_call(group_id)) for n, (group_id, to) in enumerate(empty)}
        committed: dict[str, dict[TopicPartition, int]] = {}
        for number, response in self._exchange(calls).items():
            found = commits_of(response.message)
            if not isinstance(found, EngineError):
                committed[empty[number][0]] = {key: c.offset for key, c in found.items()}
        ends = self._request_log_ends({key for offsets in committed.values() for key in offsets})
        return {
            group_id: {
                key: max(ends[key] - offset, 0) for key, offset in offsets.items() if key in ends
            }
            for group_id, offsets in committed.items()
        }

    def _request_log_ends(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Return log end offsets by partition, for those in the view whose leader returns it."""
        requested = set(self._partitions()) & set(partitions)
        calls = {
            leader: (self._addresses[leader], offsets_call(dict.fromkeys(led, LATEST)))
            for leader, led in self._by_leader(sorted(requested)).items()
        }
        ends: dict[TopicPartition, int] = {}
        for response in self._exchange(calls).values():
            for key, end in offsets_of(response.message).items():
                if not isinstance(end, EngineError):
                    ends[key] = end.offset
        return ends

    def _partitions(self) -> list[TopicPartition]:
        """Return all partitions of the view, topics in the order of their names."""
        return [
            TopicPartition(name, partition.partition)
            for name, topic in sorted(self._view.topics.items())
            for partition in topic.partitions
        ]

    def _by_leader(
        self, partitions: Collection[TopicPartition]
    ) -> Mapping[int, list[TopicPartition]]:
        """Return partitions by their leader's id, if it is not missing or silent."""
        grouped: dict[int, list[TopicPartition]] = {}
        for key in partitions:
            leader = leader_of(self._view, key)
            if isinstance(leader, int) and leader in self._addresses:
                grouped.setdefault(leader, []).append(key)
        return grouped

    def _exchange(self, calls: dict[int, tuple[Address, Call]]) -> dict[int, Response]:
        """Send all calls at once; return the responses by key, without calls that failed.

        Empty after the deadline.
        """
        if not calls or self._client.clock.monotonic_ms() >= self._deadline_ms:
            return {}
        results = self._client.exchange(calls, self._deadline_ms)
        return {key: one for key, one in results.items() if isinstance(one, Response)}
