"""Quotas on the number of a broker's connections, and on their rate.

| setting | of | at the bound |
|---|---|---|
| max.connections | broker, listener | arrivals wait until a connection closes |
| max.connection.creation.rate | broker, listener | arrivals are throttled for a while |
| max.connections.per.ip(.overrides) | broker | closed at once |
| connection_creation_rate, a quota | address | closed at once |

Where a broker has several listeners, the one between brokers is not bound by the broker's
settings, only by those of the listener: for its connections beyond `max.connections` the others
close connections, the longest idle one first. They also close those beyond a bound that was
lowered. A listener without such settings has the broker's.

Source: D25; kafka.network.ConnectionQuotas; KIP-612.
Differs: the one listener of a broker closes all beyond in one go; Kafka one of each network
thread at a time. A connection that comes too fast from an address Kafka closes when its throttle is
over. An event loop waits by `on_room`, where Kafka's acceptors wait in threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from engine.broker.quota_settings import AddressRates
from engine.limits import ADDRESS_RATES_MAX
from engine.timing.sampled_rate import SampledRate


class ListenerBounds(NamedTuple):
    """Bounds of one listener."""

    connections_max: int
    creation_rate: int


class ConnectionBounds(NamedTuple):
    """Bounds of a broker; `of_listeners` has every listener, by its name.

    `per_address` has the addresses for which `per_address_max` does not count.
    """

    connections_max: int
    creation_rate: int
    per_address_max: int
    per_address: Mapping[str, int]
    of_listeners: Mapping[str, ListenerBounds]


class ConnectionQuotas:
    """Counts the connections of one broker; `gate` has those of a listener."""

    def __init__(
        self,
        bounds: ConnectionBounds,
        between_brokers: str,
        *,
        window_count: int,
        window_ms: int,
        rates: AddressRates | None = None,
    ) -> None:
        """`between_brokers` is the name of the listener that other brokers use.

        `rates` are the quotas of addresses, as they change.
        """
        self._rates = AddressRates() if rates is None else rates
        #: Connections per second of each address; emptied when there are too many addresses.
        self._rates_of: dict[str, SampledRate] = {}
        #: The limits now in force; `change` replaces them.
        self.bounds = bounds
        #: Connections of all listeners, and below those of each address.
        self.total = 0
        self._between_brokers = between_brokers
        #: Number of samples and length of each in ms, for all rates.
        self._window = window_count, window_ms
        #: Connections per second of the whole broker.
        self._rate = SampledRate(window_count, window_ms)
        self._per_address: dict[str, int] = {}
        self._gates: dict[str, ListenerGate] = {}
        #: Called to close connections of the unprotected listeners while `is_exceeded`.
        self.on_exceeded: Callable[[], None] = lambda: None

    def gate(self, name: str) -> ListenerGate:
        """Return the gate of a listener; one for each name."""
        gate = self._gates[name] = ListenerGate(self, name, SampledRate(*self._window))
        return gate

    def change(self, bounds: ConnectionBounds) -> None:
        """Apply changed bounds; connections of an address above its new bound stay open."""
        self.bounds = bounds
        self._notify_room()
        if self.is_exceeded:
            self.on_exceeded()

    def is_protected(self, name: str) -> bool:
        """Return whether a listener has priority: it is the one between brokers."""
        return name == self._between_brokers and len(self._gates) > 1

    @property
    def is_exceeded(self) -> bool:
        """Return whether listeners have to give up connections."""
        return self.total > self.bounds.connections_max

    # The checks of the gates

    def delay_ms(self, name: str, rate: SampledRate, now_ms: int) -> int:
        """Count an arrival at a listener; returns for how many ms it is throttled."""
        delay_ms = 0
        if not self.is_protected(name):
            self._rate.record(now_ms)
            delay_ms = self._rate.delay_ms(self.bounds.creation_rate, now_ms)
        rate.record(now_ms)
        return max(delay_ms, rate.delay_ms(self.bounds.of_listeners[name].creation_rate, now_ms))

    def excess_ms(self, address: str, now_ms: int) -> int:
        """Count an arrival from an address; returns for how long it comes too soon, not counted."""
        bound = self._rates.rate_of(address)
        if bound is None:
            return 0
        rate = self._rates_of.get(address)
        if rate is None:
            if len(self._rates_of) >= ADDRESS_RATES_MAX:
                self._rates_of.clear()
            rate = self._rates_of[address] = SampledRate(*self._window)
        rate.record(now_ms)
        delay_ms = rate.delay_ms(bound, now_ms)
        if delay_ms:
            rate.record(now_ms, -1)
        return delay_ms

    def obstacle(self, name: str, count: int) -> str | None:
        """Return why a listener with so many connections accepts no more, None if it does."""
        bound = self.bounds.of_listeners[name].connections_max
        if count >= bound:
            return f"waits: listener {name} has its maximum of {bound} connections"
        if not self.is_protected(name) and self.total >= self.bounds.connections_max:
            bound = self.bounds.connections_max
            return f"waits: the broker has its maximum of {bound} connections"
        return None

    def enter(self, address: str) -> str | None:
        """Count a new connection, or return the reason for a refusal if its address has too many.

        If the broker has more than `max.connections` then, `on_exceeded` closes idle connections of
        other listeners. Source: ConnectionQuotas.inc.
        """
        count = self._per_address.get(address, 0)
        bound = self.bounds.per_address.get(address, self.bounds.per_address_max)
        if count >= bound:
            return (
                f"Rejected connection from /{address}, address already has the configured "
                f"maximum of {bound} connections."
            )
        self._per_address[address] = count + 1
        self.total += 1
        if self.is_exceeded:
            self.on_exceeded()
        return None

    def leave(self, address: str) -> None:
        """Count a connection as ended."""
        self.total -= 1
        left = self._per_address[address] - 1
        if left:
            self._per_address[address] = left
        else:
            del self._per_address[address]
        self._notify_room()

    def _notify_room(self) -> None:
        """Notify each listener that a waiting connection may have room now."""
        for gate in self._gates.values():
            gate.on_room()


class ListenerGate:
    """The gate of one listener; see `engine.host.ports.ConnectionGate`."""

    def __init__(self, quotas: ConnectionQuotas, name: str, rate: SampledRate) -> None:
        """Only `ConnectionQuotas.gate` calls this."""
        #: Called when a connection may be accepted again. The acceptor of the listener sets it.
        self.on_room: Callable[[], None] = lambda: None
        self.name = name
        #: How many connections the listener has.
        self.count = 0
        self._quotas = quotas
        self._rate = rate
        #: For how long the address of the arrived connection exceeds its rate: `enter`, the next
        #: call, then rejects the connection.
        self._excess_ms = 0

    def arrive(self, address: str, now_ms: int) -> int:
        """Note an arrival; returns for how many ms it is throttled."""
        self._excess_ms = self._quotas.excess_ms(address, now_ms)
        return self._quotas.delay_ms(self.name, self._rate, now_ms)

    def obstacle(self) -> str | None:
        """Return why no connection is accepted now, None if one more is."""
        return self._quotas.obstacle(self.name, self.count)

    def enter(self, address: str) -> str | None:
        """Count a connection; returns why it is turned away instead, None if it is not."""
        if self._excess_ms:
            return (
                f"Rejected connection from /{address}, its connection_creation_rate is exceeded "
                f"for {self._excess_ms} ms"
            )
        refusal = self._quotas.enter(address)
        if refusal is None:
            self.count += 1
        return refusal

    def leave(self, address: str) -> None:
        """Count a connection as ended that has entered."""
        self.count -= 1
        self._quotas.leave(address)
