"""Connections of a broker: who comes in, who waits, who is turned away, who has to go."""

from __future__ import annotations

from collections.abc import Mapping

from engine.broker.connection_quotas import ConnectionBounds, ConnectionQuotas, ListenerBounds
from engine.host.memory import ManualClock
from engine.host.memory_network import MemoryConnection, MemoryNetwork, MemoryTimers
from engine.host.ports import Connection
from tests.unit.host.listening import Told

ANY = 1 << 31
OPEN = ConnectionBounds(ANY, ANY, ANY, {}, {"IN": ListenerBounds(ANY, ANY)})


class Stage:
    """Listeners at h:1, h:2, … of one broker, which answer every frame."""

    def __init__(self, bounds: ConnectionBounds) -> None:
        self.clock = ManualClock()
        self.timers = MemoryTimers(self.clock)
        self.network = MemoryNetwork(self.timers)
        self.told = Told()
        self.quotas = ConnectionQuotas(bounds, "IN", window_count=11, window_ms=1000)
        gates = {name: self.quotas.gate(name) for name in bounds.of_listeners}
        self.listeners = {
            name: self.network.listen("h", port, self._accept, self.told.options(gates[name]))
            for port, name in enumerate(bounds.of_listeners, 1)
        }
        self.quotas.on_exceeded = self._close_one
        self.ports = {name: listener.port for name, listener in self.listeners.items()}

    def _close_one(self) -> None:
        assert self.listeners["OUT"].close_least_recently_used("too many")

    @staticmethod
    def _accept(connection: Connection) -> None:
        connection.on_frame = lambda frame: connection.send([bytes(frame)])

    def connect(self, name: str = "IN", address: str = "10.0.0.1") -> Client:
        return Client(self, self.network.connect("h", self.ports[name], address))

    def pass_time(self, duration_ms: int) -> None:
        self.clock.advance(duration_ms)
        self.timers.run_until_idle()


class Client:
    """A connection that has sent something."""

    def __init__(self, stage: Stage, connection: MemoryConnection) -> None:
        self.answers = 0
        self._stage = stage
        self.connection = connection
        connection.on_frame = self._count
        self.ask()

    def _count(self, _frame: memoryview) -> None:
        self.answers += 1

    def ask(self) -> None:
        self.connection.send([b"?"])
        self._stage.timers.run_until_idle()

    def leave(self) -> None:
        self.connection.close("done")
        self._stage.timers.run_until_idle()

    @property
    def state(self) -> str:
        if self.connection.is_closed:
            return "closed"
        return "served" if self.answers else "waits"


def _states(clients: list[Client]) -> list[str]:
    return [client.state for client in clients]


def _of_two(
    bounds: ConnectionBounds, of_listeners: Mapping[str, ListenerBounds] | None = None
) -> ConnectionBounds:
    listeners = {"IN": ListenerBounds(ANY, ANY), "OUT": ListenerBounds(ANY, ANY)}
    return bounds._replace(of_listeners={**listeners, **(of_listeners or {})})


def test_what_an_address_has_too_many_of_is_closed_at_once() -> None:
    stage = Stage(OPEN._replace(per_address_max=1, per_address={"10.0.0.2": 2, "10.0.0.3": 0}))
    addresses = ["10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.2", "10.0.0.2", "10.0.0.3"]
    clients = [stage.connect(address=address) for address in addresses]
    assert ["served", "closed", "served", "served", "closed", "closed"] == _states(clients)
    assert (
        "Rejected connection from /10.0.0.1, address already has the configured maximum of 1 "
        "connections."
    ) == stage.told.kept_out[0]
    clients[0].leave()
    assert "served" == stage.connect().state


def test_at_the_maximum_of_the_broker_arrivals_wait_until_somebody_leaves() -> None:
    stage = Stage(OPEN._replace(connections_max=2))
    clients = [stage.connect() for _ in range(5)]
    assert ["served", "served", "waits", "waits", "waits"] == _states(clients)
    # It is said once: the others stand in the backlog.
    assert ["waits: the broker has its maximum of 2 connections"] == stage.told.kept_out
    clients[0].leave()
    assert ["closed", "served", "served", "waits", "waits"] == _states(clients)
    stage.quotas.change(stage.quotas.bounds._replace(connections_max=4))
    stage.timers.run_until_idle()
    assert ["closed", "served", "served", "served", "served"] == _states(clients)


def test_at_the_maximum_of_a_listener_only_its_arrivals_wait() -> None:
    stage = Stage(_of_two(OPEN, {"OUT": ListenerBounds(1, ANY)}))
    clients = [stage.connect(name) for name in ("OUT", "OUT", "IN", "IN")]
    assert ["served", "waits", "served", "served"] == _states(clients)
    clients[0].leave()
    assert "served" == clients[1].state


def test_who_waits_and_gives_up_leaves_room_for_the_next() -> None:
    stage = Stage(OPEN._replace(connections_max=1))
    first, second, third = (stage.connect() for _ in range(3))
    second.leave()
    first.leave()
    assert ["closed", "closed", "served"] == _states([first, second, third])
    assert 1 == stage.quotas.total


def test_between_brokers_the_one_silent_for_longest_elsewhere_makes_room() -> None:
    stage = Stage(_of_two(OPEN._replace(connections_max=2)))
    clients = [stage.connect("OUT")]
    stage.pass_time(10)
    clients.append(stage.connect("OUT"))
    stage.pass_time(10)
    clients[0].ask()
    clients.append(stage.connect("IN"))
    assert ["served", "closed", "served"] == _states(clients)
    assert "waits" == stage.connect("OUT").state
    assert 2 == stage.quotas.total


def test_a_lower_maximum_closes_what_is_beyond_but_for_an_address() -> None:
    stage = Stage(_of_two(OPEN))
    clients = [stage.connect("OUT") for _ in range(3)]
    stage.quotas.change(stage.quotas.bounds._replace(per_address_max=1))
    assert ["served"] * 3 == _states(clients)
    stage.quotas.change(stage.quotas.bounds._replace(connections_max=2))
    stage.timers.run_until_idle()
    assert 1 == _states(clients).count("closed")


def test_arrivals_beyond_the_rate_are_throttled_and_served_later() -> None:
    stage = Stage(OPEN._replace(creation_rate=1))
    clients = [stage.connect() for _ in range(12)]
    assert ["served"] * 10 + ["waits"] * 2 == _states(clients)
    assert ["throttled for 1000 ms by max.connection.creation.rate"] == stage.told.kept_out
    stage.pass_time(1000)
    assert "served" == clients[10].state
    stage.pass_time(1000)
    assert ["served"] * 12 == _states(clients)


def test_the_rate_of_a_listener_holds_only_its_own_arrivals_back() -> None:
    stage = Stage(_of_two(OPEN, {"OUT": ListenerBounds(ANY, 1)}))
    assert ["served"] * 10 + ["waits"] == _states([stage.connect("OUT") for _ in range(11)])
    assert ["served"] * 20 == _states([stage.connect("IN") for _ in range(20)])


def test_between_brokers_the_rate_of_the_broker_holds_nobody_back() -> None:
    stage = Stage(_of_two(OPEN._replace(creation_rate=1)))
    assert ["served"] * 20 == _states([stage.connect("IN") for _ in range(20)])


def test_two_brokers_count_for_themselves() -> None:
    one, other = (Stage(OPEN._replace(connections_max=count)) for count in (1, 2))
    assert ["served", "waits"] == _states([one.connect(), one.connect()])
    assert ["served", "served"] == _states([other.connect(), other.connect()])


def test_a_closed_listener_lets_go_of_who_waits() -> None:
    stage = Stage(OPEN._replace(connections_max=1))
    clients = [stage.connect() for _ in range(3)]
    stage.listeners["IN"].close()
    stage.timers.run_until_idle()
    assert ["served", "closed", "closed"] == _states(clients)
    assert [] == stage.network.listeners
