"""Limits on the number of a broker's connections, and on their creation rate.

| setting | scope | at the limit |
|---|---|---|
| max.connections | broker, listener | new connections wait until one closes |
| max.connection.creation.rate | broker, listener | new connections are delayed |
| max.connections.per.ip(.overrides) | broker | the new connection is closed at once |
| connection_creation_rate, a quota | address | the new connection is closed at once |

If a broker has several listeners, the inter-broker listener is protected: the broker-wide limits do
not apply to it, only its own. If the broker exceeds `max.connections` through it, the other
listeners close connections, the longest idle one first. They also close connections beyond a limit
that was lowered. A listener without its own settings has the broker's.

Source: D25; kafka.network.ConnectionQuotas; KIP-612.
Differs: a broker with a single listener closes all excess connections at once; Kafka closes one per
network thread at a time. Kafka closes a connection above an address's rate only when its throttle
time is over. Acceptors wait by `on_room`; Kafka's wait in threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from engine.broker.quota_settings import AddressRates
from engine.limits import ADDRESS_RATES_MAX
from engine.timing.sampled_rate import SampledRate


class ListenerBounds(NamedTuple):
    """The limits of one listener."""

    connections_max: int
    creation_rate: int


class ConnectionBounds(NamedTuple):
    """The limits of a broker; `of_listeners` has every listener, by name.

    `per_address` has the addresses with a limit of their own in place of `per_address_max`.
    """

    connections_max: int
    creation_rate: int
    per_address_max: int
    per_address: Mapping[str, int]
    of_listeners: Mapping[str, ListenerBounds]


class ConnectionQuotas:
    """Counts and limits the connections of one broker; `gate` does it for one listener."""

    def __init__(
        self,
        bounds: ConnectionBounds,
        between_brokers: str,
        *,
        window_count: int,
        window_ms: int,
        rates: AddressRates | None = None,
    ) -> None:
        """Create the counts of a broker's connections, without any; `bounds` are the limits.

        `between_brokers` is the inter-broker listener's name, `rates` are the
        connection_creation_rate quotas of addresses.
        """
        self._rates = AddressRates() if rates is None else rates
        #: Connections per second of each address; emptied when there are too many addresses.
        self._rates_of: dict[str, SampledRate] = {}
        #: The present limits.
        self.bounds = bounds
        #: Number of connections of all listeners.
        self.total = 0
        self._between_brokers = between_brokers
        #: Number of windows and length of each in ms, for all rates.
        self._window = window_count, window_ms
        #: Connections per second of the whole broker.
        self._rate = SampledRate(window_count, window_ms)
        self._per_address: dict[str, int] = {}
        self._gates: dict[str, ListenerGate] = {}
        #: Called to close connections of other listeners while `is_exceeded`.
        self.on_exceeded: Callable[[], None] = lambda: None

    def gate(self, name: str) -> ListenerGate:
        """Create and return the gate by which a listener asks for its connections.

        Called once for each name.
        """
        gate = self._gates[name] = ListenerGate(self, name, SampledRate(*self._window))
        return gate

    def change(self, bounds: ConnectionBounds) -> None:
        """Apply changed limits; connections of an address above its new limit stay open.

        If the broker has more than `max.connections` now, `on_exceeded` closes connections.
        """
        self.bounds = bounds
        self._notify_room()
        if self.is_exceeded:
            self.on_exceeded()

    def is_protected(self, name: str) -> bool:
        """True for the inter-broker listener of a broker with several listeners. max.connections
        and its rate do not apply to it, so that brokers can always connect.
        """
        return name == self._between_brokers and len(self._gates) > 1

    @property
    def is_exceeded(self) -> bool:
        """True if the broker has more connections than max.connections."""
        return self.total > self.bounds.connections_max

    # The checks of the gates

    def delay_ms(self, name: str, rate: SampledRate, now_ms: int) -> int:
        """Count a new connection of a listener.

        Returns for how many ms to delay it, 0 for not at all. `rate` is the listener's own rate.
        """
        delay_ms = 0
        if not self.is_protected(name):
            self._rate.record(now_ms)
            delay_ms = self._rate.delay_ms(self.bounds.creation_rate, now_ms)
        rate.record(now_ms)
        return max(delay_ms, rate.delay_ms(self.bounds.of_listeners[name].creation_rate, now_ms))

    def count_of_address(self, address: str, now_ms: int) -> int:
        """Count a new connection of an address.

        Returns for how many ms its rate is exceeded, else 0. A connection above the rate is not
        counted.
        """
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

    def waiting_reason(self, name: str, count: int) -> str | None:
        """Return as text why a listener with `count` connections accepts no more now.

        It is None if the listener accepts more.
        """
        bound = self.bounds.of_listeners[name].connections_max
        if count >= bound:
            return f"waits: listener {name} has its maximum of {bound} connections"
        if not self.is_protected(name) and self.total >= self.bounds.connections_max:
            bound = self.bounds.connections_max
            return f"waits: the broker has its maximum of {bound} connections"
        return None

    def enter(self, address: str) -> str | None:
        """Count an accepted connection; return the reason to close it if its address has too many.

        None if the connection stays open. If the broker then has more than `max.connections`,
        `on_exceeded` closes idle connections of other listeners. Source: ConnectionQuotas.inc.
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
        """Uncount a closed connection of an address; listeners may then accept a waiting one."""
        self.total -= 1
        left = self._per_address[address] - 1
        if left:
            self._per_address[address] = left
        else:
            del self._per_address[address]
        self._notify_room()

    def _notify_room(self) -> None:
        """Notify each listener that a waiting connection may be accepted now."""
        for gate in self._gates.values():
            gate.on_room()


class ListenerGate:
    """The limits of one listener; implements `engine.host.ports.ConnectionGate`."""

    def __init__(self, quotas: ConnectionQuotas, name: str, rate: SampledRate) -> None:
        """Create the gate of the listener `name`; only `ConnectionQuotas.gate` calls this."""
        #: Called when a connection may be accepted again. The acceptor of the listener sets it.
        self.on_room: Callable[[], None] = lambda: None
        self.name = name
        #: Number of connections of the listener.
        self.count = 0
        self._quotas = quotas
        self._rate = rate
        #: How long the address of the new connection exceeds its rate, in ms: if it does, the
        #: following `enter` rejects the connection.
        self._excess_ms = 0

    def arrive(self, address: str, now_ms: int) -> int:
        """Count a new connection towards the rates.

        Returns for how many ms to delay it, 0 for none.
        """
        self._excess_ms = self._quotas.count_of_address(address, now_ms)
        return self._quotas.delay_ms(self.name, self._rate, now_ms)

    def waiting_reason(self) -> str | None:
        """Return as text why the listener accepts no connection now; None if it accepts."""
        return self._quotas.waiting_reason(self.name, self.count)

    def enter(self, address: str) -> str | None:
        """Count an accepted connection; return the reason if it must be closed instead.

        None if the connection stays open.
        """
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
        """Remove a closed connection from the counts."""
        self.count -= 1
        self._quotas.leave(address)
