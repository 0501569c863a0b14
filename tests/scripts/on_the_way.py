"""What lies between the nodes of a script: requests on their way, work held up, and notes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from engine.errors import EngineError
from engine.host.memory_network import MemoryTimers
from engine.host.promise import Promise
from engine.kafka_errors import kafka_error
from engine.replication.metadata_cache import BrokerNode


class Receiver(Protocol):
    """A node, as requests reach it."""

    is_cut: bool

    def take(self, name: str, request: Any) -> Any:
        """Do what a controller asks for; returns the response."""
        ...


class Surroundings(Protocol):
    """The stage, as far as it is needed here."""

    timers: MemoryTimers

    @property
    def nodes(self) -> Mapping[int, Receiver]:
        """Return the nodes that run."""
        ...

    def note(self, line: str) -> None:
        """Say what happened."""
        ...


class PausableTimers:
    """The timers of one node's controller, which a script may hold up."""

    def __init__(self, timers: MemoryTimers) -> None:
        self._timers = timers
        self._held: list[Callable[[], None]] | None = None

    def call_at(self, monotonic_ms: int, callback: Callable[[], None]) -> Callable[[], None]:
        """Run once the clock has that time."""
        return self._timers.call_at(monotonic_ms, lambda: self.call_soon(callback))

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Run on a later turn, or when the node goes on."""
        if self._held is None:
            self._timers.call_soon(callback)
        else:
            self._held.append(callback)

    call_from_thread = call_soon

    def pause(self) -> None:
        """Run nothing until `go_on`."""
        self._held = []

    def go_on(self) -> None:
        """Run what was held up."""
        held, self._held = self._held or [], None
        for callback in held:
            self._timers.call_soon(callback)


class Requests:
    """What one controller asks of brokers, on its way; see `engine.controller.ports`."""

    def __init__(self, stage: Surroundings) -> None:
        self._stage = stage
        self._open_ids: set[int] = set()
        #: Whether everything stays on the way.
        self.is_held = False
        self._waiting: list[tuple[int, str, Any, Promise[Any]]] = []

    def open(self, broker: BrokerNode) -> None:
        """Begin to pass on requests."""
        self._open_ids.add(broker.broker_id)

    def close(self, broker_id: int) -> None:
        """Drop what is on its way, and pass on no more."""
        self._open_ids.discard(broker_id)
        self._waiting = [entry for entry in self._waiting if entry[0] != broker_id]

    def lose(self, broker_id: int) -> None:
        """Lose what is on its way to a broker."""
        self._waiting = [entry for entry in self._waiting if entry[0] != broker_id]

    def send(self, broker_id: int, name: str, request: Any) -> Promise[Any]:
        """Pass on a request on a later turn."""
        response: Promise[Any] = Promise()
        if broker_id in self._open_ids:
            self._waiting.append((broker_id, name.removesuffix("Request"), request, response))
            self._stage.timers.call_soon(self.pass_on)
        return response

    def pass_on(self) -> None:
        """Deliver what can be delivered, in order."""
        if self.is_held:
            return
        waiting, self._waiting = self._waiting, []
        for entry in waiting:
            broker_id, name, request, response = entry
            node = self._stage.nodes.get(broker_id)
            if node is None:
                continue
            if node.is_cut:
                self._waiting.append(entry)
                continue
            reply = node.take(name, request)
            if getattr(reply, "error_code", 0):
                self._stage.note(
                    f"{broker_id}: refuses {name} of controller {request.controller_id}, "
                    f"epoch {request.controller_epoch}: {kafka_error(reply.error_code).name}"
                )
            response.keep(reply)


class Reporter:
    """Notes what goes wrong in a controller; see `engine.controller.ports`."""

    def __init__(self, stage: Surroundings, broker_id: int) -> None:
        self._stage = stage
        self._broker_id = broker_id

    def _note(self, line: str) -> None:
        # What a process does on its way out, nobody sees.
        if self._broker_id in self._stage.nodes:
            self._stage.note(f"{self._broker_id}: {line}")

    def on_controller_change(self, epoch: int | None) -> None:
        """Note who is elected, and who resigns."""
        word = "resigns as controller" if epoch is None else f"is controller, epoch {epoch}"
        self._note(word)

    def event_failed(self, event: str, error: EngineError) -> None:
        """Note a failure."""
        self._note(f"{event} fails, {type(error).__name__}")

    def change_refused(self, subject: str, target: str, reason: str) -> None:
        """Note what may not be."""
        self._note(f"{subject} does not become {target}: {reason}")
