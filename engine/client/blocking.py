"""The client of commands: it sends requests, waits for responses, and retries.

| destination | broker |
|---|---|
| `ANY` | a connected broker, else the bootstrap addresses in turn |
| `CONTROLLER` | the controller by the latest metadata |
| a broker id | that broker |
| leaders (`send_to_leaders`) | each partition's leader, one request per broker, all at once |
| coordinator (`send_to_coordinator`) | the coordinator of a group or transactional id |

A request is sent again after a retriable error of a broker, and if a connection broke before the
request was sent. A request that may have been executed is sent again only if `is_repeatable`.
Back-offs between attempts grow from `retry.backoff.ms` to `retry.backoff.max.ms`.

Source: ExponentialBackoff, KIP-580.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from engine.client.broker_connections import BrokerConnections, CallResult
from engine.client.connection import BrokerConnection, Call, RequestMessage, Response
from engine.client.coordinators import GROUP_KEY_TYPE, Coordinators
from engine.client.errors import ClientCloses, ConnectionLost, TimedOut, Unreachable
from engine.client.first_response import FirstResponse
from engine.client.metadata import (
    ClusterView,
    cluster_view,
    leader_of,
    metadata_request,
    topic_failure,
)
from engine.client.request_checks import ClientChecks
from engine.client.settings import Address, ClientSettings
from engine.errors import ApiError, EngineError, api_error
from engine.host.streams import Streams
from engine.kafka_errors import (
    BROKER_NOT_AVAILABLE,
    NONE,
    UNKNOWN_TOPIC_OR_PARTITION,
    kafka_error,
)
from engine.limits import PARTITION_ATTEMPTS_MAX, UNKNOWN_TOPIC_ATTEMPTS_MAX
from engine.model import TopicPartition
from engine.wire import messages
from engine.wire.schema import ENGINE_RELEASE
from engine.wire.structs import Message

if TYPE_CHECKING:
    from engine.host.ports import Clock, Entropy

ANY: Final = "any"
CONTROLLER: Final = "controller"
Destination: TypeAlias = "int | str | Address"

#: Metadata before version 4 creates the topics that a request names.
METADATA_LOWEST: Final = 4
_VERSIONS_REQUEST: Final = messages.ApiVersionsRequest(
    client_software_name="kctl", client_software_version="0"
)

T = TypeVar("T")
K = TypeVar("K")


class KafkaClient:
    """A client of one cluster that waits for its responses. Not for use by several threads.

    `timeout_ms` bounds each call as a whole, with all its attempts. `checks` may refuse requests
    before they are sent; any call raises their errors.
    """

    def __init__(
        self,
        bootstrap: Sequence[Address],
        *,
        streams: Streams,
        clock: Clock,
        entropy: Entropy,
        settings: ClientSettings | None = None,
        timeout_ms: int = 30_000,
        checks: ClientChecks | None = None,
    ) -> None:
        """Create a client without connections.

        `bootstrap` are the addresses for the first metadata request.
        """
        self.settings = settings or ClientSettings()
        self.timeout_ms = timeout_ms
        self.clock = clock
        self.entropy = entropy
        self._bootstrap = list(bootstrap)
        checks = checks or ClientChecks()
        #: Called with the cluster id of the first metadata; its error prevents further requests.
        #: None without such a check.
        self._on_cluster = checks.on_cluster
        #: Whether `_on_cluster` was called, or there is none.
        self._is_cluster_known = checks.on_cluster is None
        self.connections = BrokerConnections(
            self.settings, streams, clock, self._new_connection, on_call=checks.on_call
        )
        #: The last metadata; None before the first, and after it was found outdated.
        self._view: ClusterView | None = None
        #: Brokers of the last metadata, kept when `_view` is dropped: any of them may be asked for
        #: the next.
        self._known_addresses: tuple[Address, ...] = ()
        #: Monotonic time after which no call is repeated, although its own timeout is not over.
        #: None: each call's timeout decides.
        self._repeats_until_ms: int | None = None
        #: Addresses of the coordinators that were looked up.
        self._coordinators = Coordinators(self.send)
        #: Whether calls to coordinators of groups have a connection of their own, so that none of
        #: them waits behind a Fetch to the same broker.
        self.has_coordinators_apart = False
        #: Results of other calls, with their tokens, that came while one call waited; returned by
        #: the next wait for them.
        self._of_others: list[tuple[object, CallResult]] = []

    def __enter__(self) -> KafkaClient:
        """Return the client; connections open with the first request."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close all connections."""
        self.close()

    @property
    def bootstrap(self) -> Sequence[Address]:
        """Return the bootstrap addresses."""
        return self._bootstrap

    def close(self) -> None:
        """Close all connections."""
        self.connections.close()

    @contextmanager
    def bound_requests(self, timeout_ms: int) -> Iterator[None]:
        """Bound all requests of the block together by `timeout_ms`.

        Used while a client closes. A request whose response waits for other members of a group
        raises ClientCloses.
        """
        before_ms = self.connections.close_deadline_ms
        deadline_ms = self.clock.monotonic_ms() + timeout_ms
        self.connections.begin_closing(
            deadline_ms if before_ms is None else min(deadline_ms, before_ms)
        )
        try:
            yield
        finally:
            self.connections.close_deadline_ms = before_ms

    @contextmanager
    def bound_retries(self, until_ms: int | None) -> Iterator[None]:
        """Start no retry in the block after `until_ms` (monotonic); None sets no such bound.

        A request in flight at that time is still waited for. So a consumer's poll keeps its
        timeout.
        """
        before_ms, self._repeats_until_ms = self._repeats_until_ms, until_ms
        try:
            yield
        finally:
            self._repeats_until_ms = before_ms

    def _new_connection(self) -> BrokerConnection:
        """Return a connection that is not open yet, with SASL if the settings have it."""
        sasl = self.settings.sasl
        if sasl is None:
            return BrokerConnection(self.settings.client_id)
        from engine.client.sasl import create_conversation

        return BrokerConnection(
            self.settings.client_id, lambda: create_conversation(sasl, self.entropy)
        )

    # -- one request

    def send(
        self,
        api_name: str,
        message: RequestMessage,
        *,
        to: Destination = ANY,
        retriable_code: Callable[[Message], int] | None = None,
        lowest: int = 0,
        highest: int | None = None,
        is_repeatable: bool = True,
        release: str = ENGINE_RELEASE,
    ) -> Response:
        """Send a request to one broker and return its response.

        `message` may be a function of the version. `retriable_code` returns the error code of a
        response: while that code is retriable, the request is sent again. A final code, or one that
        is still retriable at the deadline, is returned in the response.
        """
        call = Call(api_name, message, lowest, highest, release=release)
        deadline_ms = self._deadline_ms()
        attempt = 0
        while True:
            address = self._find_address(to, deadline_ms)
            if is_repeatable or address is None:
                result = self._send_once(call, address, deadline_ms)
            else:
                result = self._send_unrepeatable(call, address, deadline_ms)
            if isinstance(result, Response):
                code = retriable_code(result.message) if retriable_code else NONE
                if not kafka_error(code).is_retriable or not self._may_wait(attempt, deadline_ms):
                    return result
            elif not self._is_worth_repeating(result, is_repeatable) or not self._may_wait(
                attempt, deadline_ms
            ):
                raise result
            self.back_off(attempt)
            self._view = None
            attempt += 1

    def send_to_any(self, call: Call, deadline_ms: int) -> Response:
        """Send a request to any broker until `deadline_ms`, a monotonic time.

        Uses an open connection, else the address that connects first, then one address after the
        other: the bootstrap addresses, then those of the metadata. Raises Unreachable, naming each
        address; any other error of the first broker that was reached.
        """
        ready_address = self.connections.ready_address()
        addresses = self._addresses()
        if ready_address is None and len(addresses) > 1:
            # The first that responds: one silent broker must not use up the time for all.
            self._send_to_first(Call("ApiVersions", _VERSIONS_REQUEST), addresses, deadline_ms)
            ready_address = self.connections.ready_address()
        if ready_address is not None:
            result = self._send_once(call, ready_address, deadline_ms)
            if not isinstance(result, Unreachable):
                return _response_or_raise(result)
        failures: list[Unreachable] = []
        for address in addresses:
            result = self._send_once(call, address, deadline_ms)
            if not isinstance(result, Unreachable):
                return _response_or_raise(result)
            failures.append(result)
        raise _merged_error(failures)

    def _addresses(self) -> list[Address]:
        """Return the bootstrap addresses, then those of the last metadata, without repetition."""
        return list(dict.fromkeys([*self._bootstrap, *self._known_addresses]))

    def _send_to_first(
        self, call: Call, addresses: Iterable[Address], deadline_ms: int
    ) -> Response:
        """Send a request to several addresses, and return the first response.

        Responses to other calls that arrive meanwhile are kept for their callers. Errors: those of
        `FirstResponse.request_from`.
        """
        timeout_ms = self.settings.request_timeout_ms
        first = FirstResponse(self.connections, self.clock, call, deadline_ms, timeout_ms)
        try:
            return first.request_from(addresses)
        finally:
            self._of_others += first.of_others

    def _send_once(
        self, call: Call, address: Address | None, deadline_ms: int, *, is_apart: bool = False
    ) -> CallResult:
        """Send one call, without a retry; return its response or error.

        `address` None sends it to any broker, and then an error is raised. `is_apart`: on the
        second connection to the address.
        """
        if address is None:
            return self.send_to_any(call, deadline_ms)
        token = object()
        return self.exchange({token: (address, call)}, deadline_ms, is_apart=is_apart)[token]

    def _send_unrepeatable(self, call: Call, address: Address, deadline_ms: int) -> CallResult:
        """Send a request that must not be sent twice; return its response or error.

        It waits until `deadline_ms`, not only for request.timeout.ms as `_send_once`: after such a
        timeout the request could not be repeated.

        Differs from `_send_once`, which waits for request.timeout.ms only.
        """
        token = object()
        left_ms = max(deadline_ms - self.clock.monotonic_ms(), 1)
        return self.exchange({token: (address, call)}, deadline_ms, request_timeout_ms=left_ms)[
            token
        ]

    def exchange(
        self,
        calls: Mapping[K, tuple[Address, Call]],
        deadline_ms: int,
        *,
        request_timeout_ms: int | None = None,
        ends_as_closing: bool = False,
        is_apart: bool = False,
    ) -> dict[K, CallResult]:
        """Send calls to their addresses all at once; return a result for each key.

        A response is waited for up to `request_timeout_ms` (None: request.timeout.ms). With
        `ends_as_closing` the wait ends when the client begins to close; keys without a response
        then have no result. Calls with `is_apart` use the second connection to their address.
        """
        if not self._is_cluster_known:
            self._learn_cluster()
        timeout_ms = min(
            max(deadline_ms - self.clock.monotonic_ms(), 1),
            request_timeout_ms or self.settings.request_timeout_ms,
        )
        # New tokens: other calls in flight may have equal keys.
        keys: dict[object, K] = {object(): key for key in calls}
        for token, key in keys.items():
            address, call = calls[key]
            self.connections.submit(address, call, token, timeout_ms, is_apart=is_apart)
        results: dict[K, CallResult] = {}
        try:
            while keys:
                for token, result in self.connections.wait(
                    timeout_ms, ends_as_closing=ends_as_closing
                ):
                    if token in keys:
                        results[keys.pop(token)] = result
                    else:
                        self._of_others.append((token, result))
                if ends_as_closing and self.connections.close_deadline_ms is not None:
                    break
        finally:
            self.connections.abandon(keys)
        return results

    def _send_and_await_members(
        self, call: Call, address: Address, deadline_ms: int, *, is_apart: bool
    ) -> CallResult:
        """Send a request whose response waits for other members of a group (JoinGroup, SyncGroup).

        Returns the response, or the error at `deadline_ms` (monotonic). If the wait ends early, the
        connection is closed: a later request on it would wait for the parked one. Raises
        ClientCloses.
        """
        token = object()
        left_ms = max(deadline_ms - self.clock.monotonic_ms(), 1)
        has_result = False
        try:
            if self.connections.close_deadline_ms is None:
                results = self.exchange(
                    {token: (address, call)},
                    deadline_ms,
                    request_timeout_ms=left_ms,
                    ends_as_closing=True,
                    is_apart=is_apart,
                )
                if token in results:
                    has_result = True
                    return results[token]
            raise ClientCloses(call.api_name)
        finally:
            if not has_result:
                self.connections.drop(address, is_apart=is_apart)

    def wait_any(
        self, timeout_ms: int, *, may_be_interrupted: bool = True
    ) -> list[tuple[object, CallResult]]:
        """Return results, with their tokens, of calls submitted directly to `connections`.

        Waits up to `timeout_ms` for the first; an empty list means that none came.
        """
        results, self._of_others = self._of_others, []
        return results or self.connections.wait(timeout_ms, may_be_interrupted=may_be_interrupted)

    def _is_worth_repeating(self, error: EngineError, is_repeatable: bool) -> bool:
        """Return True if a call that failed with `error` may be sent again: a connection error.

        Metadata must be known: another broker may have taken over. A lost connection counts only if
        `is_repeatable`, because the broker may have received the request.
        """
        if isinstance(error, ConnectionLost):
            return is_repeatable and self._view is not None
        return isinstance(error, Unreachable) and self._view is not None

    # -- time

    def _deadline_ms(self, timeout_ms: int | None = None) -> int:
        """Return the deadline (monotonic) of a call that begins now.

        It is at most the deadline of a client that closes. `timeout_ms` None: the client's timeout.
        """
        if timeout_ms is None:
            timeout_ms = self.timeout_ms
        deadline_ms = self.clock.monotonic_ms() + timeout_ms
        close_ms = self.connections.close_deadline_ms
        return deadline_ms if close_ms is None else min(deadline_ms, close_ms)

    def _may_wait(self, attempt: int, deadline_ms: int) -> bool:
        """Return True if the back-off after `attempt` (from 0) ends before `deadline_ms`.

        It must also end before the deadline of a client that closes, and that of `bound_retries`.
        """
        for bound_ms in (self.connections.close_deadline_ms, self._repeats_until_ms):
            if bound_ms is not None:
                deadline_ms = min(deadline_ms, bound_ms)
        return self.clock.monotonic_ms() + self.backoff_ms(attempt) < deadline_ms

    def backoff_ms(self, attempt: int) -> int:
        """Return the pause in ms after an attempt, which is counted from 0.

        The pause doubles with each attempt, from retry.backoff.ms up to retry.backoff.max.ms.
        """
        settings = self.settings
        doubled = settings.retry_backoff_ms << min(attempt, 20)
        return min(doubled, settings.retry_backoff_ms_max)

    def drawn_backoff_ms(self, attempt: int) -> int:
        """Return the pause after an attempt with a random deviation of up to 20 %.

        So clients that failed together do not retry together.
        """
        pause_ms = self.backoff_ms(attempt)
        return pause_ms + self.entropy.random_below(max(pause_ms * 2 // 5, 1)) - pause_ms // 5

    def back_off(self, attempt: int) -> None:
        """Pause before the next attempt of a request; `attempt` counts the failed one from 0."""
        self.connections.pause(self.drawn_backoff_ms(attempt))

    # -- metadata

    def view(self, topics: Iterable[str] | None, *, deadline_ms: int | None = None) -> ClusterView:
        """Return fresh metadata of these topics, from the first broker that responds.

        `topics` None requests all topics; an empty list requests the brokers only. `deadline_ms`
        None: the client's time-out. Errors: that of the last broker if none responds, and that of
        the check of the cluster's id.
        """
        wanted = None if topics is None else sorted(set(topics))
        request = metadata_request(wanted)
        call = Call("Metadata", request, METADATA_LOWEST)
        ready_address = self.connections.ready_address()
        first = [] if ready_address is None else [ready_address]
        deadline_ms = self._deadline_ms() if deadline_ms is None else deadline_ms
        # This request is the check that others would make first.
        was_known, self._is_cluster_known = self._is_cluster_known, True
        try:
            response = self._send_to_first(call, [*first, *self._addresses()], deadline_ms)
            view = cluster_view(response.message, is_of_kraft=response.is_of_kraft)
            if self._on_cluster is not None:
                was_known = False
                self._on_cluster(view.cluster_id)
        except EngineError:
            # A cluster that the check has refused is unknown to the next request, too.
            self._is_cluster_known = was_known
            raise
        self._view = view
        self._known_addresses = tuple(broker.address for broker in view.brokers.values())
        return view

    def _learn_cluster(self) -> None:
        """Request metadata once, so that the caller's check of the cluster id runs first.

        That check, `on_cluster`, must precede any other request: its error prevents them.
        """
        self.view([])

    def view_of_existing(self, topics: Iterable[str]) -> ClusterView:
        """Return fresh metadata of topics; raise ApiError unless all of them exist.

        It waits for a topic that was just created: brokers receive its metadata a moment later.
        """
        wanted = sorted(set(topics))
        for attempt in range(UNKNOWN_TOPIC_ATTEMPTS_MAX):
            view = self.view(wanted)
            failures = [e for name in wanted if (e := topic_failure(view, name)) is not None]
            if not any(kafka_error(e.code).is_retriable for e in failures):
                break
            self.back_off(attempt)
        if failures:
            raise failures[0]
        return view

    def await_view(
        self, topics: Iterable[str], is_settled: Callable[[ClusterView], bool], wait_ms: int
    ) -> bool:
        """Request metadata of topics until `is_settled(view)` is True.

        Returns whether it became True. False: `wait_ms` passed, or a request failed. Called after a
        change by the controller, which brokers receive a moment later: a failed request does not
        undo the change.
        """
        wanted = sorted(set(topics))
        deadline_ms = min(self.clock.monotonic_ms() + wait_ms, self._deadline_ms())
        attempt = 0
        try:
            while not is_settled(self.view(wanted)):
                if not self._may_wait(attempt, deadline_ms):
                    return False
                self.back_off(attempt)
                attempt += 1
        except EngineError:
            return False
        return True

    def brokers_view(self) -> ClusterView:
        """Return metadata with all brokers: that of an earlier response, else fresh."""
        return self._view if self._view is not None else self.view([])

    def _find_address(self, to: Destination, deadline_ms: int) -> Address | None:
        """Return the address of a destination; None for ANY.

        Waits while there is no controller. `to` is ANY, CONTROLLER, a broker id or an address.
        Raises ApiError BROKER_NOT_AVAILABLE for an absent broker, TimedOut without a controller.
        """
        if to == ANY:
            return None
        if isinstance(to, Address):
            return to
        attempt = 0
        while True:
            view = self.brokers_view()
            wanted = view.controller_id if to == CONTROLLER else to
            if isinstance(wanted, int) and wanted in view.brokers:
                return view.brokers[wanted].address
            if to != CONTROLLER:
                alive = ", ".join(str(b) for b in sorted(view.brokers)) or "none"
                raise api_error(BROKER_NOT_AVAILABLE, f"no broker {to} is alive; alive: {alive}")
            if not self._may_wait(attempt, deadline_ms):
                raise TimedOut("looking for the controller", self.timeout_ms)
            self.back_off(attempt)
            self._view = None
            attempt += 1

    # -- many partitions

    def send_to_leaders(
        self,
        partitions: Iterable[TopicPartition],
        make_call: Callable[[list[TopicPartition], ClusterView], Call],
        read: Callable[[Message, int], Mapping[TopicPartition, T | EngineError]],
        *,
        is_repeatable: bool = True,
    ) -> dict[TopicPartition, T | EngineError]:
        """Send requests to the leaders of partitions; return a result or error for each partition.

        One request per leader, all at once. `make_call` builds the request for a leader's
        partitions; `read` takes a response and its version. Partitions with retriable errors are
        requested again with fresh metadata, a few times.
        """
        results: dict[TopicPartition, T | EngineError] = {}
        left = list(dict.fromkeys(partitions))
        deadline_ms = self._deadline_ms()
        for attempt in range(PARTITION_ATTEMPTS_MAX):
            view = self.view({p.topic for p in left})
            results |= self._exchange_with_leaders(left, view, make_call, read, deadline_ms)
            left = [p for p in left if _should_repeat(results[p], attempt, is_repeatable)]
            if not left or not self._may_wait(attempt, deadline_ms):
                break
            self.back_off(attempt)
        return results

    def _exchange_with_leaders(
        self,
        partitions: list[TopicPartition],
        view: ClusterView,
        make_call: Callable[[list[TopicPartition], ClusterView], Call],
        read: Callable[[Message, int], Mapping[TopicPartition, T | EngineError]],
        deadline_ms: int,
    ) -> dict[TopicPartition, T | EngineError]:
        """Send one request to each leader of `partitions`; return a result for each partition.

        No retries: errors, including a missing leader, are results.
        """
        results: dict[TopicPartition, T | EngineError] = {}
        by_leader: dict[int, list[TopicPartition]] = {}
        for wanted in partitions:
            leader = leader_of(view, wanted)
            if isinstance(leader, EngineError):
                results[wanted] = leader
            else:
                by_leader.setdefault(leader, []).append(wanted)
        calls = {
            leader: (view.brokers[leader].address, make_call(led, view))
            for leader, led in by_leader.items()
        }
        for leader, result in self.exchange(calls, deadline_ms).items():
            led = by_leader[leader]
            if isinstance(result, Response):
                by_partition = read(result.message, result.version)
                results |= {p: by_partition.get(p, _missing_partition_error(p)) for p in led}
            else:
                results |= dict.fromkeys(led, result)
        return results

    # -- coordinators

    def coordinator(self, key: str, key_type: int = GROUP_KEY_TYPE) -> Address:
        """Return the coordinator's address for a group (key type 0) or a transactional id (1).

        It is looked up by FindCoordinator once, then cached.
        """
        return self._coordinators.address(key, key_type)

    def send_to_coordinator(  # noqa: PLR0913 (those of `send`, and whose coordinator)
        self,
        key: str,
        api_name: str,
        message: RequestMessage,
        *,
        key_type: int = GROUP_KEY_TYPE,
        retriable_code: Callable[[Message], int],
        lowest: int = 0,
        highest: int | None = None,
        timeout_ms: int | None = None,
        release: str = ENGINE_RELEASE,
    ) -> Response:
        """Send a request to the coordinator of a group or transactional id.

        The coordinator is looked up, and again after it has moved. `timeout_ms` is for requests
        that the coordinator delays (JoinGroup); it bounds each request and all attempts together.
        Raises the errors of the requests, and ClientCloses if the client begins to close during
        such a wait.
        """
        deadline_ms = self._deadline_ms(timeout_ms)
        is_apart = self.has_coordinators_apart and key_type == GROUP_KEY_TYPE
        attempt = 0
        call = Call(api_name, message, lowest, highest, release=release)
        while True:
            result: CallResult
            try:
                address = self._coordinators.address(key, key_type)
            except Unreachable as error:
                if not self._known_addresses:
                    raise
                # Metadata was received before: the brokers may be restarting.
                result = error
            else:
                if timeout_ms is None:
                    result = self._send_once(call, address, deadline_ms, is_apart=is_apart)
                else:
                    result = self._send_and_await_members(
                        call, address, deadline_ms, is_apart=is_apart
                    )
            code = retriable_code(result.message) if isinstance(result, Response) else NONE
            if isinstance(result, Response) and not kafka_error(code).is_retriable:
                return result
            # One that does not answer may have been replaced.
            self._coordinators.forget(key, key_type)
            if not isinstance(result, Response | Unreachable):
                raise result
            if not self._may_wait(attempt, deadline_ms):
                return _response_or_raise(result)
            self.back_off(attempt)
            attempt += 1


def _should_repeat(result: object, attempt: int, is_repeatable: bool) -> bool:
    """Return True if a retry may help: a retriable code, or a broker that cannot be reached.

    A lost connection needs `is_repeatable`.
    """
    if isinstance(result, ApiError):
        if result.code == UNKNOWN_TOPIC_OR_PARTITION:
            return attempt + 1 < UNKNOWN_TOPIC_ATTEMPTS_MAX
        return kafka_error(result.code).is_retriable
    if isinstance(result, ConnectionLost):
        return is_repeatable
    return isinstance(result, Unreachable)


def _missing_partition_error(wanted: TopicPartition) -> ApiError:
    """Return the error of a partition that a response does not contain."""
    return api_error(-1, f"the broker's answer leaves out {wanted}")


def _response_or_raise(result: CallResult) -> Response:
    """Return the response of a call; raise its error if it has none."""
    if isinstance(result, Response):
        return result
    raise result


def _merged_error(failures: list[Unreachable]) -> Unreachable:
    """Return one Unreachable that names each address with its reason, in order of the attempts."""
    if len(failures) == 1:
        return failures[0]
    first = failures[0]
    rest = "; ".join(f"{f.host}:{f.port}: {f.reason}" for f in failures[1:])
    return Unreachable(first.host, first.port, f"{first.reason}; {rest}")
