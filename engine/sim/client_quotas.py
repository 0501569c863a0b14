"""Rules of client quotas: a throttled connection is not served, and a produce quota is not exceeded.

| rule | |
|---|---|
| Q1 | a request that a client sends on a connection after a response with a throttle time is served after that time |
| Q2 | the bytes that a broker accepted from a client since its quota was set there are at most those that the quota allows, plus those of one measurement period and those that were in flight at the same time |

A client that opens a new connection is not throttled there, in Kafka too: only Q1 is checked for
it. A client that waits for each throttle time (KIP-219) is checked for both, as long as its
connection lasts.

Source: KIP-13, KIP-219; `engine/api/enforced_quotas.py`.
"""  # noqa: E501 - a table

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, Protocol

from engine.client.connection import Call, Response
from engine.client.settings import Address
from engine.kafka_errors import NONE
from engine.model import TopicPartition
from engine.security.quota_limits import QuotaKind
from engine.sim.node import SimulatedBroker
from engine.wire import messages

#: The period over which rates are measured: `quota.window.num` windows of
#: `quota.window.size.seconds`.
_MEASURED_MS: Final = 11_000
_USER: Final = "ANONYMOUS"


class BrokenRules(Protocol):
    """Records broken rules."""

    def broke(self, rule: str, text: str, partition: TopicPartition | None) -> None:
        """Record that a rule was broken.

        `rule` is its short name, such as Q1; `text` describes what broke it. `partition` is None if
        it concerns no single partition.
        """


class _Throttled(NamedTuple):
    """A throttled connection.

    The requests sent before the client knew of it, and the end of the throttle.
    """

    connection_number: int
    #: How many requests had been sent by then: times cannot order events within one millisecond.
    sent_before: int
    until_ms: int


class _Measured:
    """Bytes that a broker accepted from a client since the quota was set."""

    def __init__(self, bytes_per_s: float, life: int, since_ms: int) -> None:
        """Start counting; `life` is the life number of the broker's process."""
        self.bytes_per_s = bytes_per_s
        self.life = life
        self.since_ms = since_ms
        self.taken_bytes = 0


class QuotaRules:
    """Checks throttle times and produce quotas, by the requests and responses of all clients."""

    def __init__(self, broken: BrokenRules) -> None:
        """Create the rules; `broken` receives the violations."""
        self._broken = broken
        #: The last throttle time of each client by broker.
        self._throttled: dict[tuple[str, Address], _Throttled] = {}
        #: How many requests all clients have sent.
        self._sent_count = 0
        #: Bytes accepted since the quota was set, by client and broker.
        self._measured: dict[tuple[str, str], _Measured] = {}
        #: Bytes of Produce requests in flight, now and at most, by client and broker.
        self._open_bytes: dict[tuple[str, str], int] = {}
        self._open_bytes_max: dict[tuple[str, str], int] = {}
        #: Clients that wait for the end of each throttle time: rule Q2 is checked only for them.
        self._waiting_clients: set[str] = set()

    def check_quota_of(self, client: str) -> None:
        """Check rule Q2 for a client from now on.

        It must wait for the end of each throttle time.
        """
        self._waiting_clients.add(client)

    def watch(self, node: SimulatedBroker, now_ms: Callable[[], int]) -> None:
        """Check rule Q2 after each change of the quotas of a broker that has started, too.

        A quota that is removed and set again between two checks limits nothing meanwhile: the
        measurement starts again.
        """
        if node.broker is None:
            return
        quotas = node.broker.quotas
        refresh = quotas.on_change

        def refresh_and_check() -> None:
            """Let the broker apply the change, then check the rule by it."""
            refresh()
            self.check((node,), now_ms())

        quotas.on_change = refresh_and_check

    def record_request(self, client: str, address: Address, call: Call) -> int:
        """Record that a client sends a request; return the request's number, from 0 on."""
        number = self._sent_count
        self._sent_count += 1
        key, size = (client, address.host), _produced_bytes(call)
        open_bytes = self._open_bytes[key] = self._open_bytes.get(key, 0) + size
        self._open_bytes_max[key] = max(open_bytes, self._open_bytes_max.get(key, 0))
        return number

    def record_end(
        self, client: str, address: Address, call: Call, *, is_lost: bool = False
    ) -> None:
        """Record that a request got its response, or that its connection was lost (`is_lost`)."""
        key = (client, address.host)
        self._open_bytes[key] -= _produced_bytes(call)
        if is_lost:
            # The next connection is not throttled: the measurement starts again with it.
            self._measured.pop(key, None)

    def check_response(
        self,
        client: str,
        address: Address,
        call: Call,
        response: Response,
        *,
        connection_number: int,
        sent_number: int,
        sent_ms: int,
        now_ms: int,
    ) -> int:
        """Check rule Q1: a throttled client gets no response before its throttle time is over.

        Only requests sent on the same connection after the throttled response count. Returns the
        throttle time of this response in ms.
        """
        key = (client, address)
        throttled = self._throttled.get(key)
        if (
            throttled is not None
            and throttled.connection_number == connection_number
            and sent_number >= throttled.sent_before
            and now_ms < throttled.until_ms
        ):
            early_ms = throttled.until_ms - now_ms
            text = f"{client} has a response of {address.host} {early_ms} ms early"
            self._broken.broke("Q1", text, None)
        throttle_ms: int = getattr(response.message, "throttle_time_ms", 0)
        if throttle_ms:
            # The broker wrote the response at some time after the request was sent.
            self._throttled[key] = _Throttled(
                connection_number, self._sent_count, sent_ms + throttle_ms
            )
        measured = self._measured.get((client, address.host))
        if measured is not None and sent_ms >= measured.since_ms and _is_taken(response):
            measured.taken_bytes += _produced_bytes(call)
        return throttle_ms

    def check(self, nodes: Iterable[SimulatedBroker], now_ms: int) -> None:
        """Check rule Q2: a broker accepts no more bytes of a client than its produce quota allows.

        Only clients that wait for the end of throttle times are checked.
        """
        for node in nodes:
            for client in sorted(self._waiting_clients):
                self._check(node, client, now_ms)

    def _check(self, node: SimulatedBroker, client: str, now_ms: int) -> None:
        """Check rule Q2 for one client and broker, by the quota that the broker has now.

        The measurement starts again when the quota changes or the broker restarts.
        """
        key = (client, node.name)
        limits = None if node.broker is None else node.broker.quotas.limits
        limit = None if limits is None else limits.limit_of(QuotaKind.PRODUCE, _USER, client)
        if limit is None:
            self._measured.pop(key, None)
            return
        measured, life = self._measured.get(key), node.machine.life
        if measured is None or (measured.bytes_per_s, measured.life) != (limit.per_s, life):
            self._measured[key] = _Measured(limit.per_s, life, now_ms)
            return
        allowed_ms = now_ms - measured.since_ms + _MEASURED_MS
        allowed_bytes = limit.per_s * allowed_ms / 1000 + self._open_bytes_max.get(key, 0)
        if measured.taken_bytes > allowed_bytes:
            taken = f"{node.name} took {measured.taken_bytes} bytes of {client}"
            self._broken.broke("Q2", f"{taken}, {allowed_bytes:.0f} are allowed", None)


def limited_clients(nodes: Iterable[SimulatedBroker]) -> list[str]:
    """Return a line for each broker that still has client quotas; empty once all are removed."""
    return [
        f"{node.name} has quotas for {sorted(node.broker.quotas.limits.owners())}"
        for node in nodes
        if node.broker is not None and not node.broker.quotas.limits.is_empty
    ]


def _produced_bytes(call: Call) -> int:
    """Return the bytes of records in a Produce request; 0 for any other request."""
    message = call.message
    if not isinstance(message, messages.ProduceRequest):
        return 0
    return sum(
        len(row.records or b"") for topic in message.topic_data for row in topic.partition_data
    )


def _is_taken(response: Response) -> bool:
    """Return True if a Produce response accepts all records."""
    topics = getattr(response.message, "responses", ())
    return all(
        getattr(row, "error_code", NONE) == NONE
        for topic in topics
        for row in getattr(topic, "partition_responses", ())
    )
