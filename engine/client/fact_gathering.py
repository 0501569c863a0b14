"""Requests the facts of all findings from a cluster, by a deadline even if brokers hang.

1. Metadata from the broker that answers first: half of the cluster may be silent.
2. All requests to all brokers at the same time: log directories, throttles, the log ends of
   out-of-sync replicas, the ongoing reassignments (the controller), the settings of topics (the
   broker of step 1). A broker that answers none of them in half of the time is silent.
3. If another controller took over in between, the reassignments are requested from that one; if the
   settings of topics failed, they are requested from another broker.
4. A second sample of the log directories of brokers that copy replicas shows their rate.

A request without a response becomes a finding of its own, and the other facts are used. The
settings of topics are requested last on their connection: a broker whose metadata store hangs
answers no later request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.broker_connections import CallResult
from engine.client.cluster_admin import LogDirView, log_dirs_call, log_dirs_of
from engine.client.config_admin import (
    ConfigEntry,
    ConfigResourceType,
    Resource,
    configs_call,
    configs_of,
)
from engine.client.connection import Call, Response
from engine.client.errors import NoCommonVersion, TimedOut, Unreachable
from engine.client.findings import MIN_ISR, ClusterFacts, Unanswered
from engine.client.health import BROKER_THROTTLES, TOPIC_THROTTLES, throttles_in
from engine.client.metadata import ClusterView, PartitionView
from engine.client.move_progress import added_replicas_bytes
from engine.client.reassignments import (
    OngoingReassignment,
    listing_call,
    listing_of,
    with_adding,
)
from engine.client.replica_ends import ends_call, ends_of
from engine.client.settings import Address
from engine.errors import ApiError, EngineError
from engine.kafka_errors import UNKNOWN_TOPIC_OR_PARTITION, kafka_error
from engine.limits import MOVE_RATE_MS
from engine.model import TopicPartition
from engine.wire.structs import Message

_LOG_DIRS: Final = "its log directories"
_THROTTLES: Final = "its settings"
_ENDS: Final = "the ends of its replicas"
_MOVES: Final = "the reassignments under way"
_TOPICS: Final = "the settings of topics"
_ALL: Final = "log directories, settings and reassignments"
#: In place of a broker id: the broker that answered first.
_FIRST: Final = -1


class _Request(NamedTuple):
    """One kind of request to one broker."""

    what: str
    broker_id: int


def gather_facts(
    client: KafkaClient, topics: Sequence[str] | None, timeout_ms: int
) -> ClusterFacts:
    """Return the facts that `kctl check` judges: metadata, log directories, configs, reassignments.

    Of all topics if `topics` is None; requested within `timeout_ms`. A request that fails is a
    missing fact. Raises the errors of a Metadata request if no broker responds.
    """
    deadline_ms = client.clock.monotonic_ms() + timeout_ms
    view = client.view(topics, deadline_ms=deadline_ms)
    return _Gathering(client, view, deadline_ms, timeout_ms).facts()


class _Gathering:
    """The responses to all requests about one view of a cluster."""

    def __init__(
        self, client: KafkaClient, view: ClusterView, deadline_ms: int, timeout_ms: int
    ) -> None:
        """Create a gathering whose requests end at `deadline_ms` (monotonic).

        `timeout_ms` is the whole time allowed, which an error names.
        """
        self._client = client
        self._timeout_ms = timeout_ms
        self._view = view
        self._deadline_ms = deadline_ms
        #: Results by request, as they come.
        self._answers: dict[_Request, CallResult] = {}
        #: Whether the deadline had passed when metadata came, so that no other request is sent.
        self._is_late = self._left_ms() <= 0
        #: Address of the broker that gets the requests for topics: one with an open connection, if
        #: any.
        self._first = client.connections.ready_address() or _any_address(client, view)

    def facts(self) -> ClusterFacts:
        """Send the requests, and return the facts of the responses."""
        self._exchange(dict(self._build_calls()))
        self._retry()
        moves = self._moves()
        log_dirs = self._log_dirs(_LOG_DIRS)
        ongoing = {} if isinstance(moves, EngineError) else moves
        view = with_adding(self._view, ongoing)
        described = self._settings_by_resource()
        return ClusterFacts(
            view,
            _min_isr(described),
            log_dirs,
            self._log_ends(),
            throttles_in(described),
            {key: move for key, move in ongoing.items() if view.partition(key) is not None},
            self._silent_brokers(),
            list(self._missing_facts()),
            self._sample_move_rates(ongoing, log_dirs),
        )

    # -- requests

    def _build_calls(self) -> Iterator[tuple[_Request, tuple[Address, Call]]]:
        """Yield the calls to brokers: directories, throttles, log ends, reassignments, settings.

        Reassignments come from the controller alone, settings of topics from the first broker that
        responded.
        """
        view = self._view
        ends = _requested_replicas(view)
        for broker_id, broker in sorted(view.brokers.items()):
            address, resource = broker.address, _broker_resource(broker_id)
            yield _Request(_LOG_DIRS, broker_id), (address, log_dirs_call())
            throttles = configs_call([resource], BROKER_THROTTLES)
            yield _Request(_THROTTLES, broker_id), (address, throttles)
            if broker_id in ends:
                yield _Request(_ENDS, broker_id), (address, ends_call(ends[broker_id]))
            if broker_id == view.controller_id:
                yield _Request(_MOVES, broker_id), (address, self._listing())
        if view.topics:
            yield _Request(_TOPICS, _FIRST), (self._first, self._topics_call())

    def _listing(self) -> Call:
        """Return the call for all ongoing reassignments, which times out at the deadline."""
        return listing_call(None, max(self._left_ms(), 1))

    def _topics_call(self) -> Call:
        """Return the call for min.insync.replicas and the throttles of all topics."""
        resources = [Resource(ConfigResourceType.TOPIC, name) for name in sorted(self._view.topics)]
        return configs_call(resources, (MIN_ISR, *TOPIC_THROTTLES))

    def _left_ms(self) -> int:
        """Return the milliseconds until the deadline, negative after the deadline."""
        return self._deadline_ms - self._client.clock.monotonic_ms()

    def _exchange(self, calls: Mapping[_Request, tuple[Address, Call]]) -> None:
        """Send all requests at once, and wait for half of the time that is left."""
        if not calls or self._left_ms() <= 0:
            return
        deadline_ms = self._deadline_ms - self._left_ms() // 2
        self._answers |= self._client.exchange(calls, deadline_ms)

    def _retry(self) -> None:
        """Retry the list of reassignments at the current controller, configs at another broker.

        Only requests that failed in a way that another broker may resolve are retried.
        """
        calls: dict[_Request, tuple[Address, Call]] = {}
        if self._is_controller_in_doubt() and self._left_ms() > 0:
            controller_id = self._refresh_controller()
            if controller_id is not None:
                address = self._view.brokers[controller_id].address
                calls[_Request(_MOVES, controller_id)] = address, self._listing()
        if isinstance(self._answers.get(_Request(_TOPICS, _FIRST)), Unreachable | TimedOut):
            others = [
                broker.address
                for broker_id, broker in self._view.brokers.items()
                if broker_id not in self._silent_brokers() and broker.address != self._first
            ]
            if others:
                calls[_Request(_TOPICS, _FIRST)] = others[0], self._topics_call()
        self._exchange(calls)

    def _is_controller_in_doubt(self) -> bool:
        """True if the controller did not list the reassignments, and a new one may."""
        answer = self._answers.get(_Request(_MOVES, self._view.controller_id))
        if isinstance(answer, Response):
            return kafka_error(answer.message.error_code).is_retriable
        return not isinstance(answer, NoCommonVersion)

    def _refresh_controller(self) -> int | None:
        """Request metadata; return the controller's id, None if it is unknown or has not responded.

        Brokers and controller in `_view` are updated.
        """
        try:
            deadline_ms = self._deadline_ms - self._left_ms() * 2 // 3
            fresh = self._client.view([], deadline_ms=deadline_ms)
        except EngineError:
            return None
        brokers = {**self._view.brokers, **fresh.brokers}
        self._view = self._view._replace(controller_id=fresh.controller_id, brokers=brokers)
        is_known = fresh.controller_id in brokers
        return (
            fresh.controller_id
            if is_known and fresh.controller_id not in self._silent_brokers()
            else None
        )

    # -- reading

    def _results_of(self, what: str) -> Iterator[tuple[int, CallResult]]:
        """Yield broker id and result of each request of one kind, for instance `_LOG_DIRS`."""
        for request, answer in self._answers.items():
            if request.what == what:
                yield request.broker_id, answer

    def _silent_brokers(self) -> dict[int, EngineError]:
        """Return the brokers that have not responded to any request, each with its error."""
        silent: dict[int, EngineError] = {}
        heard = set()
        for request, answer in self._answers.items():
            if isinstance(answer, Unreachable | TimedOut):
                silent.setdefault(request.broker_id, answer)
            else:
                heard.add(request.broker_id)
        return {id_: e for id_, e in silent.items() if id_ not in heard and id_ != _FIRST}

    def _log_dirs(self, what: str) -> dict[int, list[LogDirView] | EngineError]:
        """Return the log directories of each broker that was requested, or its error."""
        return {
            broker_id: answer if isinstance(answer, EngineError) else log_dirs_of(answer.message)
            for broker_id, answer in self._results_of(what)
        }

    def _moves(self) -> dict[TopicPartition, OngoingReassignment] | EngineError:
        """Return the ongoing reassignments, or the controller's error; empty without request."""
        answer: Message = self._answers.get(_Request(_MOVES, self._view.controller_id))
        if answer is None:
            return {}
        return answer if isinstance(answer, EngineError) else listing_of(answer.message)

    def _log_ends(self) -> dict[tuple[TopicPartition, int], int | EngineError]:
        """Return each requested replica's log end offset (exclusive), or its error."""
        ends: dict[tuple[TopicPartition, int], int | EngineError] = {}
        requested = _requested_replicas(self._view)
        for broker_id, answer in self._results_of(_ENDS):
            if isinstance(answer, EngineError):
                ends |= {(key, broker_id): answer for key in requested.get(broker_id, [])}
            else:
                of_broker = ends_of(answer.message)
                ends |= {(key, broker_id): end for key, end in of_broker.items()}
        return ends

    def _settings_by_resource(self) -> dict[Resource, list[ConfigEntry] | EngineError]:
        """Return the settings of topics and brokers; brokers that failed are left out."""
        described: dict[Resource, list[ConfigEntry] | EngineError] = {}
        for what in (_TOPICS, _THROTTLES):
            for _, answer in self._results_of(what):
                if isinstance(answer, Response):
                    described |= configs_of(answer.message)
        return described

    def _missing_facts(self) -> Iterator[Unanswered]:
        """Yield the facts that single requests did not return, without those of silent brokers.

        A silent broker has responded to no request: it is a finding of its own.
        """
        if self._is_late:
            yield Unanswered("cluster", _ALL, TimedOut("asking brokers", self._timeout_ms))
        silent = self._silent_brokers()
        for request, answer in self._answers.items():
            what, broker_id = request
            if broker_id in silent or what == _ENDS or isinstance(answer, NoCommonVersion):
                continue
            if what == _MOVES and broker_id != self._view.controller_id:
                continue
            error = answer if isinstance(answer, EngineError) else _error_in(what, answer)
            if error is not None:
                subject = "cluster" if broker_id == _FIRST else f"broker {broker_id}"
                yield Unanswered(subject, what, error)

    # -- how fast

    def _sample_move_rates(
        self,
        moves: Mapping[TopicPartition, OngoingReassignment],
        before: Mapping[int, list[LogDirView] | EngineError],
    ) -> dict[TopicPartition, float]:
        """Return the bytes a second that each reassignment copies, from two log directory samples.

        Waits MOVE_RATE_MS between them. Empty without copying brokers or enough time.
        """
        silent, view = self._silent_brokers(), self._view
        copying = {id_ for move in moves.values() for id_ in move.adding} - set(silent)
        # The second sample may take half of the remaining time; later requests need the rest.
        if not copying or self._left_ms() < 2 * MOVE_RATE_MS:
            return {}
        clock = self._client.clock
        began_ms = clock.monotonic_ms()
        self._client.connections.pause(MOVE_RATE_MS)
        calls = {
            id_: (view.brokers[id_].address, log_dirs_call()) for id_ in copying & {*view.brokers}
        }
        answers = self._client.exchange(calls, self._deadline_ms - self._left_ms() // 2)
        passed_s = max(clock.monotonic_ms() - began_ms, 1) / 1000
        after = {
            id_: answer if isinstance(answer, EngineError) else log_dirs_of(answer.message)
            for id_, answer in answers.items()
        }
        # A broker in only one sample would make its whole copy count as copied between the samples.
        seen = {
            id_ for id_ in copying if all(isinstance(x.get(id_), list) for x in (before, after))
        }
        return {
            key: (added_replicas_bytes(key, move, after) - added_replicas_bytes(key, move, before))
            / passed_s
            for key, move in moves.items()
            if seen.issuperset(move.adding)
        }


def _any_address(client: KafkaClient, view: ClusterView) -> Address:
    """Return the address of a broker in the metadata, or else of a bootstrap server."""
    return next((b.address for b in view.brokers.values()), client.bootstrap[0])


def _broker_resource(broker_id: int) -> Resource:
    """Return the config resource of a broker."""
    return Resource(ConfigResourceType.BROKER, str(broker_id))


def _error_in(what: str, answer: Response) -> EngineError | None:
    """Return the error in a response to a request of the kind `what`, None if it has facts."""
    if what == _LOG_DIRS:
        found = log_dirs_of(answer.message)
        return found if isinstance(found, EngineError) else None
    if what == _MOVES:
        moves = listing_of(answer.message)
        return moves if isinstance(moves, EngineError) else None
    errors = [e for e in configs_of(answer.message).values() if isinstance(e, ApiError)]
    # A topic may be deleted between two requests.
    return next((e for e in errors if e.code != UNKNOWN_TOPIC_OR_PARTITION), None)


def _min_isr(described: Mapping[Resource, list[ConfigEntry] | EngineError]) -> dict[str, int]:
    """Return min.insync.replicas by topic, 1 where it has no value; without failed topics."""
    found = {}
    for resource, entries in described.items():
        if resource.kind is ConfigResourceType.TOPIC and not isinstance(entries, EngineError):
            value = next((entry.value for entry in entries if entry.name == MIN_ISR), None)
            found[resource.name] = int(value or 1)
    return found


def _requested_replicas(view: ClusterView) -> dict[int, list[TopicPartition]]:
    """Return by broker the partitions whose log end offset to request from that broker.

    These are partitions without a leader or with a replica out of sync: their lag explains why.
    """
    requested: dict[int, list[TopicPartition]] = {}
    for key, partition in _iter_partitions(view):
        if len(partition.isr) < len(partition.replicas) or not partition.has_leader:
            for broker_id in partition.replicas:
                if broker_id in view.brokers:
                    requested.setdefault(broker_id, []).append(key)
    return requested


def _iter_partitions(view: ClusterView) -> Iterable[tuple[TopicPartition, PartitionView]]:
    """Yield each partition with its metadata, topics in the order of their names."""
    for name in sorted(view.topics):
        for partition in view.topics[name].partitions:
            yield TopicPartition(name, partition.partition), partition
