"""The requests of a scrape: their number depends on brokers and groups, not on partitions.

1. Metadata, from the broker that responds first.
2. All at once: log directories and groups of each broker, the first and the last offset of the
   partitions that it leads, the reassignments (controller), and settings of topics (the broker of
   step 1) if they are wanted.
3. From coordinators: commits and members of their groups, up to EXPORTER_GROUPS_PER_REQUEST in a
   request; brokers before 3.0 accept one group per request for commits.

Each step has half of the time that is left. A broker without any response in step 2 gets no request
in step 3.

With a pace, the requests of all steps are spread over some seconds, and the pace decides how long
to wait for each response.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.broker_connections import CallResult
from engine.client.cluster_admin import LogDirView, log_dirs_call, log_dirs_of
from engine.client.config_admin import ConfigResourceType, Resource, configs_call, configs_of
from engine.client.connection import Call, Response
from engine.client.errors import NoCommonVersion, TimedOut, Unreachable
from engine.client.findings import MIN_ISR
from engine.client.groups import (
    CommitView,
    GroupDescription,
    GroupListing,
    commits_call,
    commits_of,
    listings_of,
)
from engine.client.many_groups import (
    commits_of_groups,
    commits_of_groups_call,
    consumer_descriptions_call,
    consumer_descriptions_of,
    descriptions_call,
    descriptions_of,
)
from engine.client.metadata import ClusterView, leader_of
from engine.client.offsets import EARLIEST, LATEST, offsets_call, offsets_of
from engine.client.reassignments import OngoingReassignment, listing_call, listing_of
from engine.client.settings import Address
from engine.errors import EngineError, api_error
from engine.exporter.cluster_sample import ClusterSample, GroupSample, RequestFailure
from engine.exporter.request_pace import RequestPace
from engine.kafka_errors import NONE
from engine.limits import EXPORTER_GROUPS_PER_REQUEST
from engine.model import TopicPartition
from engine.wire import messages

CLEANUP_POLICY: Final = "cleanup.policy"
_CLASSIC: Final = "classic"
_CONSUMER_PROTOCOL: Final = "consumer"
_SHARE: Final = "share"


class _Request(NamedTuple):
    """A request: its broker, its API, and what distinguishes it from others of the API."""

    broker_id: int
    api_name: str
    about: str | int = ""


_Calls = Iterable[tuple[_Request, Call]]


def gather_sample(
    client: KafkaClient,
    timeout_ms: int,
    *,
    with_policies: bool = True,
    with_groups: bool = True,
    pace: RequestPace | None = None,
) -> ClusterSample:
    """Request a sample of a cluster; raises the error of Metadata if no broker responds.

    Failures of other requests are in the sample. `pace` limits the requests to each broker; with
    it, `timeout_ms` applies only to the Metadata request.
    """
    if pace is not None:
        pace.await_room()
    began_ms = client.clock.monotonic_ms()
    deadline_ms = began_ms + timeout_ms
    view = client.view(None, deadline_ms=deadline_ms)
    if pace is not None:
        # Any of these brokers may have received the Metadata request.
        pace.note((broker.address for broker in view.brokers.values()), began_ms)
    gathering = _Gathering(client, view, deadline_ms, pace)
    gathering.send(gathering.first_calls(with_policies=with_policies, with_groups=with_groups))
    listings = gathering.listings()
    gathering.send(group_calls(listings))
    gathering.send(gathering.fallback_commit_calls(listings))
    return ClusterSample(
        view,
        gathering.log_dirs(),
        gathering.offsets(EARLIEST),
        gathering.offsets(LATEST),
        gathering.moves(),
        gathering.groups(listings),
        gathering.policies(),
        tuple(gathering.failures()),
        gathering.silent(),
        gathering.min_isr(),
    )


class _Gathering:
    """Requests about one view of a cluster, and their responses."""

    def __init__(
        self, client: KafkaClient, view: ClusterView, deadline_ms: int, pace: RequestPace | None
    ) -> None:
        """Without `pace` the requests of a step are sent at once."""
        self._client = client
        self._pace = pace
        self._view = view
        self._deadline_ms = deadline_ms
        #: Results by request.
        self._results: dict[_Request, CallResult] = {}

    # Requests

    def send(self, requests: _Calls) -> None:
        """Send requests together, and wait up to half of the remaining time for responses.

        The other half is for the requests that depend on these responses. Brokers that did not
        respond before get none.
        """
        silent = self.silent()
        now_ms = self._client.clock.monotonic_ms()
        calls: dict[_Request, tuple[Address, Call]] = {
            request: (self._view.brokers[request.broker_id].address, call)
            for request, call in requests
            if request.broker_id not in silent
        }
        if self._pace is not None:
            self._exchange_by_pace(calls, self._pace)
        elif calls:
            deadline_ms = now_ms + max((self._deadline_ms - now_ms) // 2, 1)
            self._results |= self._client.exchange(calls, deadline_ms)

    def _exchange_by_pace(
        self, calls: dict[_Request, tuple[Address, Call]], pace: RequestPace
    ) -> None:
        """Send requests in waves, each as soon as the pace permits; `calls` is emptied.

        A broker that does not respond gets no further requests: they get the same error.
        """
        while calls:
            wave = pace.take(calls)
            results = self._client.exchange(wave, pace.deadline_ms())
            self._results |= results
            for request, result in results.items():
                if isinstance(result, Unreachable | TimedOut):
                    left = [q for q in calls if q.broker_id == request.broker_id]
                    for unsent in left:
                        self._results[unsent] = result
                        del calls[unsent]

    def first_calls(self, *, with_policies: bool, with_groups: bool) -> _Calls:
        """Yield the requests that need only metadata, each with the key of its result.

        They are for log directories, groups, offsets, reassignments and topic settings.
        """
        view = self._view
        led = self._led_partitions()
        for broker_id in sorted(view.brokers):
            yield _Request(broker_id, "DescribeLogDirs"), log_dirs_call()
            if with_groups:
                call = Call("ListGroups", messages.ListGroupsRequest())
                yield _Request(broker_id, "ListGroups"), call
            for at in (EARLIEST, LATEST) if broker_id in led else ():
                call = offsets_call(dict.fromkeys(led[broker_id], at))
                yield _Request(broker_id, "ListOffsets", at), call
        if view.controller_id in view.brokers:
            left_ms = max(self._deadline_ms - self._client.clock.monotonic_ms(), 1)
            request = _Request(view.controller_id, "ListPartitionReassignments")
            yield request, listing_call(None, left_ms)
        if with_policies and view.topics and view.brokers:
            topics = [Resource(ConfigResourceType.TOPIC, name) for name in sorted(view.topics)]
            request = _Request(self._first_broker(), "DescribeConfigs")
            yield request, configs_call(topics, (CLEANUP_POLICY, MIN_ISR))

    def _first_broker(self) -> int:
        """Return the id of the broker with a ready connection, else the lowest id."""
        address = self._client.connections.ready_address()
        brokers = self._view.brokers
        return next((id_ for id_, b in brokers.items() if b.address == address), min(brokers))

    def _led_partitions(self) -> Mapping[int, list[TopicPartition]]:
        """Return the partitions by leader, without those that have none."""
        led: dict[int, list[TopicPartition]] = {}
        for name, topic in sorted(self._view.topics.items()):
            for row in topic.partitions:
                key = TopicPartition(name, row.partition)
                leader = leader_of(self._view, key)
                if isinstance(leader, int):
                    led.setdefault(leader, []).append(key)
        return led

    def fallback_commit_calls(self, listings: Sequence[GroupListing]) -> _Calls:
        """Yield OffsetFetch requests for one group each, to coordinators that accept no more.

        They are of old releases, and answered the request for several groups with no common
        version; those results are dropped.
        """
        old = {
            request.broker_id
            for request, result in self._results.items()
            if request.api_name == "OffsetFetch" and isinstance(result, NoCommonVersion)
        }
        for request in [q for q in self._results if q.api_name == "OffsetFetch"]:
            if request.broker_id in old:
                del self._results[request]
        for group in listings:
            if group.coordinator_id in old:
                request = _Request(group.coordinator_id, "OffsetFetch", group.group_id)
                yield request, commits_call(group.group_id)

    # Reading

    def _responses(self, api_name: str) -> Iterator[tuple[_Request, Response]]:
        """Yield the requests of an API that got a response."""
        for request, result in self._results.items():
            if request.api_name == api_name and isinstance(result, Response):
                yield request, result

    def silent(self) -> frozenset[int]:
        """Return the ids of the brokers that responded to none of the requests sent to them."""
        heard = {q.broker_id for q, result in self._results.items() if not _is_silence(result)}
        return frozenset(q.broker_id for q in self._results if q.broker_id not in heard)

    def failures(self) -> Iterator[RequestFailure]:
        """Yield the requests without a response, and those whose whole response is an error.

        That an old broker does not know an API is not a failure.
        """
        for request, result in self._results.items():
            error = result if isinstance(result, EngineError) else _refusal(request, result)
            # That an old broker does not know an API is not a failure.
            if error is not None and not isinstance(error, NoCommonVersion):
                yield RequestFailure(request.broker_id, request.api_name, error)

    def log_dirs(self) -> dict[int, list[LogDirView]]:
        """Return the log directories by broker; brokers with an error are left out."""
        found = {}
        for request, response in self._responses("DescribeLogDirs"):
            log_dirs = log_dirs_of(response.message)
            if not isinstance(log_dirs, EngineError):
                found[request.broker_id] = log_dirs
        return found

    def offsets(self, at: int) -> dict[TopicPartition, int]:
        """Return the offsets at EARLIEST or LATEST of partitions whose leader returned them."""
        return {
            key: offset.offset
            for request, response in self._responses("ListOffsets")
            if request.about == at
            for key, offset in offsets_of(response.message).items()
            if not isinstance(offset, EngineError)
        }

    def moves(self) -> dict[TopicPartition, OngoingReassignment] | None:
        """Return the ongoing reassignments, None if the controller did not return them."""
        for _, response in self._responses("ListPartitionReassignments"):
            moves = listing_of(response.message)
            return None if isinstance(moves, EngineError) else moves
        return None

    def policies(self) -> dict[str, str]:
        """Return cleanup.policy by topic, of the topics whose settings were returned."""
        return self._settings(CLEANUP_POLICY)

    def min_isr(self) -> dict[str, int]:
        """Return min.insync.replicas by topic, of the topics whose settings were returned."""
        return {name: int(value or 1) for name, value in self._settings(MIN_ISR).items()}

    def _settings(self, key: str) -> dict[str, str]:
        """Return the values of the setting `key` by topic; topics with an error are left out."""
        return {
            resource.name: entry.value or ""
            for _, response in self._responses("DescribeConfigs")
            for resource, entries in configs_of(response.message).items()
            if not isinstance(entries, EngineError)
            for entry in entries
            if entry.name == key
        }

    def listings(self) -> list[GroupListing]:
        """Return all groups, sorted by name; one that two brokers list is returned once."""
        by_name = {
            group.group_id: group
            for request, response in self._responses("ListGroups")
            if response.message.error_code == NONE
            for group in listings_of(response.message, request.broker_id)
        }
        return [by_name[name] for name in sorted(by_name)]

    def groups(self, listings: Sequence[GroupListing]) -> tuple[GroupSample, ...]:
        """Return the groups with the committed offsets and descriptions from their coordinators.

        A group that was not described has None, one without known commits an empty map.
        """
        commits = self._commits()
        descriptions = self._descriptions()
        return tuple(
            GroupSample(group, descriptions.get(group.group_id), commits.get(group.group_id, {}))
            for group in listings
        )

    def _commits(self) -> dict[str, dict[TopicPartition, CommitView]]:
        """Return committed offsets by group and partition; groups with an error are left out."""
        found: dict[str, dict[TopicPartition, CommitView] | EngineError] = {}
        for request, response in self._responses("OffsetFetch"):
            if response.message.groups:
                found |= commits_of_groups(response.message)
            else:
                found[str(request.about)] = commits_of(response.message)
        return {name: one for name, one in found.items() if not isinstance(one, EngineError)}

    def _descriptions(self) -> dict[str, GroupDescription]:
        """Return descriptions by group; groups with an error are left out."""
        found: dict[str, GroupDescription | EngineError] = {}
        for _, response in self._responses("DescribeGroups"):
            found |= descriptions_of(response.message)
        for _, response in self._responses("ConsumerGroupDescribe"):
            found |= consumer_descriptions_of(response.message)
        return {name: one for name, one in found.items() if not isinstance(one, EngineError)}


def _kind(group: GroupListing) -> str:
    """Return the type of a group in lower case; old brokers return none, which is classic."""
    return (group.group_type or _CLASSIC).lower()


def group_calls(listings: Sequence[GroupListing]) -> _Calls:
    """Yield the requests for committed offsets and descriptions of the listed groups.

    Share groups commit no offsets. Groups of other types than classic and consumer are not
    described: DescribeGroups returns them as dead, and their listing has the state.
    """
    of_types: dict[str, list[GroupListing]] = {}
    for group in listings:
        of_types.setdefault(_kind(group), []).append(group)
    for broker_id, group_ids in _chunks([g for g in listings if _kind(g) != _SHARE]):
        yield _Request(broker_id, "OffsetFetch", group_ids[0]), commits_of_groups_call(group_ids)
    for broker_id, group_ids in _chunks(of_types.get(_CLASSIC, ())):
        yield _Request(broker_id, "DescribeGroups", group_ids[0]), descriptions_call(group_ids)
    for broker_id, group_ids in _chunks(of_types.get(_CONSUMER_PROTOCOL, ())):
        request = _Request(broker_id, "ConsumerGroupDescribe", group_ids[0])
        yield request, consumer_descriptions_call(group_ids)


def _is_silence(result: CallResult) -> bool:
    """Return True if a broker did not respond; an error in a response is a response."""
    return isinstance(result, Unreachable | TimedOut)


def _chunks(listings: Sequence[GroupListing]) -> Iterator[tuple[int, list[str]]]:
    """Yield (coordinator id, group ids), with at most as many groups as a request may have."""
    by_broker: dict[int, list[str]] = {}
    for group in listings:
        by_broker.setdefault(group.coordinator_id, []).append(group.group_id)
    for broker_id, group_ids in sorted(by_broker.items()):
        for start in range(0, len(group_ids), EXPORTER_GROUPS_PER_REQUEST):
            yield broker_id, group_ids[start : start + EXPORTER_GROUPS_PER_REQUEST]


def _refusal(request: _Request, response: Response) -> EngineError | None:
    """Return the error if the whole response is an error, None for any other response."""
    message = response.message
    if request.api_name == "DescribeLogDirs":
        log_dirs = log_dirs_of(message)
        return log_dirs if isinstance(log_dirs, EngineError) else None
    if request.api_name in ("ListGroups", "ListPartitionReassignments"):
        return api_error(message.error_code) if message.error_code != NONE else None
    return None
