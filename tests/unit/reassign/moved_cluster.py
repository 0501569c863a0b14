"""A cluster in memory whose partitions are moved by a plan, and what is true of it afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from engine.client.config_admin import (
    ConfigChange,
    ConfigOp,
    ConfigResourceType,
    Resource,
    alter_configs,
)
from engine.host.memory_held_file import MemoryHeldFiles
from engine.host.process_identity import ProcessIdentity
from engine.model import TopicPartition
from engine.planner.plan import PartitionChange
from engine.reassign.change_status import ExecutionStatus
from engine.reassign.execution import Execution, ExecutionEnd
from engine.reassign.journal import MoveJournal
from engine.reassign.journal_state import Begun, ExecutionSettings, JournalState, read_journal
from engine.reassign.live_cluster import LiveCluster, MovedCluster
from engine.reassign.throttles import LISTS, RATES, ThrottleRates, ThrottleSetting
from tests.unit.broker.memory_cluster import MemoryCluster
from tests.unit.reassign.memory_streams import MemoryStreams, client_of

#: The process that executes.
WRITER = ProcessIdentity(7, "here", "kim")
JOURNAL = "/plan.journal"
T0 = TopicPartition("t", 0)


def change(
    partition: int, old: Sequence[int], new: Sequence[int], topic: str = "t"
) -> PartitionChange:
    """Return a change of one partition; the first of each leads."""
    return PartitionChange(topic, partition, tuple(old), tuple(new), old[0], new[0], 1000)


class MovedTopic:
    """Topic t of four partitions on brokers 1 and 2, each with some records."""

    def __init__(self, **settings: str) -> None:
        settings.setdefault("auto_leader_rebalance_enable", "false")
        self.cluster = MemoryCluster(is_one_process=True, **settings)
        self.cluster.create_topic(replicas=[(1, 2), (2, 1), (1, 2), (2, 1)])
        self.cluster.pass_time(2000)
        #: Records that were acknowledged, by partition.
        self.acknowledged: Counter[int] = Counter()
        for number in range(20):
            self.produce(number % 4)
        self.files = MemoryHeldFiles()
        self.streams = MemoryStreams(self.cluster)
        self.client = client_of(self.cluster, self.streams)
        self.changes: tuple[PartitionChange, ...] = (
            change(0, (1, 2), (3, 2)),
            change(1, (2, 1), (2, 3)),
            change(2, (1, 2), (2, 1)),
            change(3, (2, 1), (2, 1, 3)),
        )
        self.looks: list[ExecutionStatus] = []

    def produce(self, number: int) -> None:
        """Produce a record with acks=all, if there is a leader."""
        key = TopicPartition("t", number)
        leader = self.cluster.stored(key).leader
        if leader in self.cluster.brokers and self.cluster.produce(leader, 1, key=key).code() == 0:
            self.acknowledged[number] += 1

    # Executing

    def begin(self, settings: ExecutionSettings | None = None) -> None:
        """Begin a journal."""
        begun = Begun(None, self.changes, settings or ExecutionSettings())
        MoveJournal.create(self.files, JOURNAL, begun, WRITER).close()

    def execution(self, wrap: Callable[[MovedCluster], MovedCluster] = lambda it: it) -> Execution:
        """Return an execution that goes on with the journal; `wrap` comes between it and Kafka.

        The process of an earlier one is dead by then.
        """
        self.files.kill_holders()
        journal, state = MoveJournal.reopen(self.files, JOURNAL, WRITER)
        topic = state.begun.settings.latency_topic
        cluster = wrap(LiveCluster(self.client, state.begun.changes, topic))
        return Execution(cluster, self.cluster.clock, journal, state)

    def execute(self, **settings: Any) -> ExecutionEnd:
        """Execute the changes to the end."""
        self.begin(ExecutionSettings(**settings))
        return self.execution().run(self.looks.append)

    def state(self) -> JournalState:
        """Return what the journal tells."""
        return read_journal(self.files, JOURNAL)

    # What is true

    def replicas(self) -> dict[int, tuple[int, ...]]:
        """Return the replicas of each partition."""
        view = self.client.view(["t"])
        return {p.partition: p.replicas for p in view.topics["t"].partitions}

    def leaders(self) -> dict[int, int]:
        """Return who leads each partition."""
        view = self.client.view(["t"])
        return {p.partition: p.leader for p in view.topics["t"].partitions}

    def phases(self, number: int) -> list[str]:
        """Return the phases that were seen of a change, each once, in order."""
        seen = [look.changes[number].phase.value for look in self.looks]
        return list(dict.fromkeys(seen))

    def records(self) -> dict[int, int]:
        """Return how many records each partition holds, at its leader."""
        found = {}
        for number, leader in self.leaders().items():
            key = TopicPartition("t", number)
            found[number] = self.cluster.partition(leader, key).log.log_end_offset
        return found

    def throttles(self) -> dict[str, str]:
        """Return every throttle that is set."""
        settings = [ThrottleSetting(Resource(ConfigResourceType.TOPIC, "t"), n) for n in LISTS]
        for broker_id in self.cluster.brokers:
            resource = Resource(ConfigResourceType.BROKER, str(broker_id))
            settings += [ThrottleSetting(resource, name) for name in RATES]
        values = LiveCluster(client_of(self.cluster), self.changes).throttles(settings)
        return {str(s): str(value) for s, value in values.items() if value is not None}

    def set(self, kind: ConfigResourceType, name: str, **values: str) -> None:
        """Set throttles as somebody else does."""
        changes = [
            ConfigChange(ConfigOp.SET, key.replace("_", "."), value)
            for key, value in values.items()
        ]
        resource = Resource(kind, name)
        assert alter_configs(self.client, {resource: changes})[resource] is None


RATE = ThrottleRates(replication=1_000_000)


class Died(Exception):
    """Kctl was killed."""


class Mortal:
    """A cluster at whose nth call kctl dies: before it is made, or once it has been."""

    def __init__(self, cluster: MovedCluster, dies_at: int, *, is_made: bool) -> None:
        self._cluster = cluster
        self._left = dies_at
        self._is_made = is_made

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._cluster, name)

        def mortal(*args: Any) -> Any:
            self._left -= 1
            if self._left == 0 and not self._is_made:
                raise Died
            answer = call(*args)
            if self._left == 0:
                raise Died
            return answer

        return mortal
