"""Rules of client quotas: a throttled connection serves nothing, and a produce quota is held.

| rule | |
|---|---|
| Q1 | what a client sends on a connection after a response with a throttle time is served behind that time |
| Q2 | what a broker took of a client since its quota is set there is what the quota allows, one measured time, and what was on its way at once |

A client that sends again on a new connection is not throttled there, in Kafka too: its bytes count
for Q1 alone. A client that waits for each throttle time counts for both (KIP-219), for as long as
its connection lasts.

Source: KIP-13, KIP-219; `engine/api/enforced_quotas.py`.
"""  # noqa: E501 - a table

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

from engine.client.connection import Call, Response
from engine.client.settings import Address
from engine.kafka_errors import NONE
from engine.model import TopicPartition
from engine.security.quota_limits import QuotaKind
from engine.sim.node import SimulatedBroker
from engine.wire import messages

#: Over how long rates are measured: `quota.window.num` windows of `quota.window.size.seconds`.
_MEASURED_MS: Final = 11_000
_USER: Final = "ANONYMOUS"


class BrokenRules(Protocol):
    """Notes broken rules."""

    def broke(self, rule: str, text: str, partition: TopicPartition | None) -> None:
        """Note a broken rule."""


class _Throttled(NamedTuple):
    """A throttled connection: requests sent before its client knew, and the end of the throttle."""

    connection_number: int
    #: How many requests were sent by then: a time does not order what is of one millisecond.
    sent_before: int
    until_ms: int


class _Measured:
    """Bytes that a broker accepted from a client since the quota was set there."""

    def __init__(self, bytes_per_s: float, life: int, since_ms: int) -> None:
        """Begin to count; `life` is that of the broker's process."""
        self.bytes_per_s = bytes_per_s
        self.life = life
        self.since_ms = since_ms
        self.taken_bytes = 0


class QuotaRules:
    """Checks throttle times and produce quotas by the requests and responses of all clients."""

    def __init__(self, broken: BrokenRules) -> None:
        """`broken` gets the violations."""
        self._broken = broken
        #: The throttle time that each client last got from each broker.
        self._throttled: dict[tuple[str, Address], _Throttled] = {}
        #: Number of the last request of any client.
        self._sent_count = 0
        #: Bytes that each client and broker exchanged since the quota was set.
        self._measured: dict[tuple[str, str], _Measured] = {}
        #: Bytes of Produce requests without a response, now and at most, by client and broker.
        self._open_bytes: dict[tuple[str, str], int] = {}
        self._open_bytes_max: dict[tuple[str, str], int] = {}
        #: Clients that wait for the end of each throttle time: only these are checked for rule Q2.
        self._waiting_clients: set[str] = set()

    def check_quota_of(self, client: str) -> None:
        """Check Q2 for a client from now on: it has to wait for each throttle time."""
        self._waiting_clients.add(client)

    def sent(self, client: str, address: Address, call: Call) -> int:
        """Note a request; return its number, from 0 on."""
        number = self._sent_count
        self._sent_count += 1
        key, size = (client, address.host), _produced_bytes(call)
        open_bytes = self._open_bytes[key] = self._open_bytes.get(key, 0) + size
        self._open_bytes_max[key] = max(open_bytes, self._open_bytes_max.get(key, 0))
        return number

    def ended(self, client: str, address: Address, call: Call, *, is_lost: bool = False) -> None:
        """Note that a request got its response, or lost its connection and gets none."""
        key = (client, address.host)
        self._open_bytes[key] -= _produced_bytes(call)
        if is_lost:
            # The next connection is not throttled: what is allowed is measured from there on.
            self._measured.pop(key, None)

    def responded(
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
        """Check the response to a numbered request; returns its throttle time in ms."""
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
            # The broker has written the response some time after the request was sent.
            self._throttled[key] = _Throttled(
                connection_number, self._sent_count, sent_ms + throttle_ms
            )
        measured = self._measured.get((client, address.host))
        if measured is not None and sent_ms >= measured.since_ms and _is_taken(response):
            measured.taken_bytes += _produced_bytes(call)
        return throttle_ms

    def check(self, nodes: Iterable[SimulatedBroker], now_ms: int) -> None:
        """Check the bytes accepted from each client against the quotas that the brokers know."""
        for node in nodes:
            for client in sorted(self._waiting_clients):
                self._check(node, client, now_ms)

    def _check(self, node: SimulatedBroker, client: str, now_ms: int) -> None:
        """Check Q2: the bytes accepted from a client since its quota was set, at the quota's rate.

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
    """Return the brokers that have client quotas, as text; empty once all are removed."""
    return [
        f"{node.name} has quotas for {sorted(node.broker.quotas.limits.owners())}"
        for node in nodes
        if node.broker is not None and not node.broker.quotas.limits.is_empty
    ]


def _produced_bytes(call: Call) -> int:
    """Return the bytes of records in a Produce request, 0 for all other requests."""
    message = call.message
    if not isinstance(message, messages.ProduceRequest):
        return 0
    return sum(
        len(row.records or b"") for topic in message.topic_data for row in topic.partition_data
    )


def _is_taken(response: Response) -> bool:
    """Return True if a Produce response accepts all of the records."""
    topics = getattr(response.message, "responses", ())
    return all(
        getattr(row, "error_code", NONE) == NONE
        for topic in topics
        for row in getattr(topic, "partition_responses", ())
    )
