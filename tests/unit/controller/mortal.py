"""A cluster whose controller dies at a write that the test chooses.

Brokers 1 to 4 have the replicas and never stand for election. Broker 8 is the controller until it
dies, then broker 9 is. Requests without a response are sent again, as clients and brokers do.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from engine.controller.controller import Controller
from engine.host.promise import Promise
from engine.model import TopicPartition
from engine.znode.errors import NodeError, SessionExpired
from engine.znode.paths import broker_path, partition_state_path
from engine.znode.values import decode_partition_state, decode_topic
from tests.unit.controller.cluster import Cluster, Node, now
from tests.unit.controller.replicas import Replicas

FIRST, SECOND = 8, 9
HOLDERS = (1, 2, 3, 4)
_WRITES = ("create", "set", "delete", "multi")
_ROOTS = (
    "/brokers/topics",
    "/config/topics",
    "/admin",
    "/isr_change_notification",
    "/log_dir_event_notification",
    "/latest_producer_id_block",
)


class Death:
    """When the first controller dies: instead of its n-th write, or as soon as that is done."""

    def __init__(self, number: int, *, is_done: bool) -> None:
        self.number = number
        self.is_done = is_done

    def __str__(self) -> str:
        return f"{'after' if self.is_done else 'before'} write {self.number}"


class MortalClient:
    """A client that counts writes, and dies."""

    def __init__(self, world: MortalCluster, node: Node) -> None:
        self._world = world
        self._node = node
        self.writes = 0
        self.is_counting = False

    @property
    def session_id(self) -> int:
        """Return the session."""
        return self._node.client.session_id

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._node.client, name)
        if name not in _WRITES:
            return call

        async def write(*arguments: Any, **options: Any) -> Any:
            death = self._world.death
            self.writes += self.is_counting
            is_now = self.is_counting and death is not None and death.number == self.writes
            if not (is_now and death is not None):
                return await call(*arguments, **options)
            if death.is_done:
                with suppress(NodeError):
                    await call(*arguments, **options)
            self._world.let_first_die()
            raise SessionExpired(self.session_id)

        return write


class MortalCluster:
    """The cluster, and what its brokers were told."""

    def __init__(self, death: Death | None = None, *, absent: tuple[int, ...] = ()) -> None:
        self.death = death
        self.cluster = Cluster(0)
        self.clients: dict[int, MortalClient] = {}
        for broker_id in HOLDERS:
            if broker_id not in absent:
                self.register(broker_id)
        for broker_id in (FIRST, SECOND):
            node = self.cluster.nodes[broker_id] = Node(self.cluster, broker_id)
            client = self.clients[broker_id] = MortalClient(self, node)
            node.controller = Controller(
                broker_id,
                node.controller._balance._config,
                lambda node=node: node.settings,  # type: ignore[misc]
                node.ports._replace(znodes=client),  # type: ignore[arg-type]
            )
            node.register()
            node.controller.start()
            self.cluster.settle()
        self.replicas = Replicas(self.cluster)
        self._asking: list[Callable[[], bool]] = []

    # -- brokers -------------------------------------------------------------------------------

    def register(self, broker_id: int) -> None:
        """Let a broker with replicas come up."""
        node = self.cluster.nodes[broker_id] = Node(self.cluster, broker_id)
        for other in self.cluster.nodes.values():
            other.channel.silent.discard(broker_id)
        node.register()

    def kill(self, broker_id: int) -> None:
        """Let a broker with replicas die."""
        node = self.cluster.nodes.pop(broker_id)
        for other in self.cluster.nodes.values():
            other.channel.silent.add(broker_id)
        node.die()

    def let_first_die(self) -> None:
        """End the first controller: it writes and sends no more."""
        node = self.cluster.nodes.pop(FIRST)
        node.channel.send = lambda *_: Promise()  # type: ignore[method-assign]
        now(node.client.close())
        node.controller.stop()

    # -- what happens --------------------------------------------------------------------------

    def create_topic(self, topic: str, *replicas: tuple[int, ...]) -> None:
        """Write what the admin path writes for a new topic."""
        self.cluster.create_topic(topic, *replicas, settle=False)

    def ask(
        self, request: Callable[[Controller], Promise[Any]], is_done: Callable[[Any], bool]
    ) -> None:
        """Ask the controller, and again until it says that it has done what it was asked for."""
        promises: list[Promise[Any]] = []

        def try_again() -> bool:
            if promises and promises[-1].is_kept and is_done(promises[-1].result()):
                return False
            promises.append(request(self.cluster.controller))
            return True

        self._asking.append(try_again)

    def settle(self) -> None:
        """Run until nothing changes any more."""
        self.replicas.settle()
        for _ in range(4):
            if not [each for each in list(self._asking) if each()]:
                break
            self.replicas.settle()
        else:
            raise AssertionError("the controller does not do what it is asked for")
        self._asking.clear()

    # -- what is seen --------------------------------------------------------------------------

    def stored(self, with_leaders: bool) -> dict[str, object]:
        """Return what is stored, without epochs."""
        found: dict[str, object] = {}
        folders = list(_ROOTS)
        while folders:
            path = folders.pop()
            if not self.cluster.exists(path):
                continue
            data = now(self.cluster.admin.get(path))[0]
            found[path] = _without_epochs(path, data, with_leaders=with_leaders)
            folders += [f"{path}/{name}" for name in self.cluster.children(path)]
        return found

    def orders(self, with_leaders: bool) -> dict[tuple[int, TopicPartition], object]:
        """Return what replicas that can serve were told last, without epochs."""
        context = self.cluster.controller.context
        return {
            key: told if isinstance(told, str) else (told.leader * with_leaders, told.replicas)
            for key, told in self.replicas.told.items()
            if key[0] in HOLDERS and context.is_online(*key)
        }

    def assert_all_know(self) -> None:
        """Assert that what was told last is what is stored, at each broker that is alive."""
        context = self.cluster.controller.context
        live = [id_ for id_ in self.cluster.nodes if self.cluster.exists(broker_path(id_))]
        assert sorted(live) == context.live_ids()
        for partition in context.leaderships:
            path = partition_state_path(partition)
            data, stat = now(self.cluster.admin.get(path))
            state = decode_partition_state(data, path)
            assert (state.leader, state.isr, stat.version) == (
                context.leaderships[partition].state.leader,
                context.leaderships[partition].state.isr,
                context.leaderships[partition].partition_epoch,
            )
            replicas = context.assignment(partition).replicas
            assert set(state.isr) <= set(replicas)
            for broker_id in live:
                told = self.replicas.metadata[broker_id, partition]
                assert (state.leader, state.leader_epoch, set(state.isr), replicas) == (
                    told.leader,
                    told.leader_epoch,
                    set(told.isr),
                    told.replicas,
                ), (broker_id, partition)
                if broker_id in replicas and context.is_online(broker_id, partition):
                    order = self.replicas.told[broker_id, partition]
                    assert not isinstance(order, str)
                    assert (state.leader, state.leader_epoch) == (order.leader, order.leader_epoch)


def _without_epochs(path: str, data: bytes | None, *, with_leaders: bool) -> object:
    if path.endswith("/state"):
        state = decode_partition_state(data, path)
        return state.leader * with_leaders, frozenset(state.isr), state.leader_recovery_state
    if path.startswith("/brokers/topics/") and path.count("/") == 3:
        return decode_topic(data, path)
    return data
