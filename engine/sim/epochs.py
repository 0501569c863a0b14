"""Rules R6, R11 and C2 about leader and controller epochs, as observed from outside the brokers.

| rule | checked when | claim |
|---|---|---|
| R6 | a leader's high watermark increased | each follower it counts knows the leader's epoch |
| R11 | a leader proposes a larger ISR | the new member reached the high watermark and epoch start |
| C2 | a broker received partition states | it accepts none of an older epoch or controller |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.broker.broker import Broker
from engine.model import TopicPartition
from engine.replication.partition import Partition
from engine.sim.histories import History
from engine.sim.node import SimulatedBroker

Broke = Callable[[str, str, TopicPartition | None], None]


class _ReceivedEpochs:
    """The controller and leader epochs that one life of a broker has received."""

    def __init__(self, broker: Broker) -> None:
        """Create it for a new life of `broker`, which has no metadata yet."""
        self.broker = broker
        #: Version of the metadata cache at the last check; -1 before the first.
        self.version = -1
        #: Lower bound of the epoch of the last controller that sent metadata.
        self.controller_epoch = 0
        #: Leader epochs of the cache, by partition and topic id; none may decrease.
        self.epochs: dict[tuple[TopicPartition, bytes], int] = {}


class EpochRules:
    """Checks the epochs that brokers receive and use."""

    def __init__(
        self,
        broke: Broke,
        nodes: Mapping[int, SimulatedBroker],
        histories: Mapping[TopicPartition, History],
    ) -> None:
        """Create the rules; `broke` reports a violation by its rule, text and partition."""
        self._broke = broke
        self._nodes = nodes
        self._histories = histories
        #: Latest leader epoch of each replica; a restart of its process must not decrease it.
        self._reached: dict[tuple[int, TopicPartition, str | None], int] = {}
        #: Log end offset of each leader when its epoch began.
        self._starts: dict[tuple[TopicPartition, str | None, int], int] = {}
        #: First epoch of each leader's uninterrupted leadership.
        self._first_epochs: dict[tuple[int, TopicPartition], int] = {}
        #: Epochs that each broker's metadata cache has had.
        self._heard: dict[int, _ReceivedEpochs] = {}
        #: Controller epochs of each broker, by name, ascending.
        self._controllers: dict[str, list[int]] = {}

    def record_controller(self, name: str, epoch: int) -> None:
        """Record which broker is the controller of an epoch."""
        self._controllers.setdefault(name, []).append(epoch)

    def roll_back(self, controller_epoch: int) -> None:
        """Forget later controller epochs, after the store was set back to an older backup.

        They are used again. All brokers are restarted then.
        """
        for name, epochs in self._controllers.items():
            self._controllers[name] = [epoch for epoch in epochs if epoch <= controller_epoch]

    def on_replica_change(self, partition: Partition) -> None:
        """Record the leader epoch that a replica has reached."""
        key = partition.broker_id, partition.topic_partition, partition.log.topic_id
        self._reached[key] = max(self._reached.get(key, -1), partition.leader_epoch)

    def on_leader_epoch(self, partition: Partition, *, led_before: bool) -> None:
        """Record a leader's log end offset at the start of its epoch.

        A broker that also led the epoch before keeps the progress of its followers. A leader that
        lost writes in a power cut may lead the same epoch again, with a shorter log.

        Source: Replica.resetReplicaState.
        """
        key = partition.topic_partition, partition.log.topic_id, partition.leader_epoch
        end = partition.log.log_end_offset
        self._starts[key] = min(self._starts.get(key, end), end)
        if not led_before:
            self._first_epochs[partition.broker_id, partition.topic_partition] = key[2]

    def check_watermark_rise(self, partition: Partition) -> None:
        """Check rule R6: a leader raises its high watermark only with followers of its epoch."""
        key, topic_id = partition.topic_partition, partition.log.topic_id
        first_epoch = self._first_epochs[partition.broker_id, key]
        for broker_id in partition.in_sync.maximal_isr:
            if broker_id not in partition.followers:
                continue
            reached = self._reached.get((broker_id, key, topic_id), -1)
            if reached < first_epoch:
                self._broke(
                    "R6",
                    f"{key}: leader {partition.broker_id} since epoch {first_epoch} counts "
                    f"{broker_id}, which has heard of epoch {reached}",
                    key,
                )

    def check_joining_follower(self, partition: Partition, broker_id: int) -> None:
        """Check rule R11 for a follower that a leader adds to the ISR.

        Its log must reach the start of the leader's epoch and the high watermark.
        """
        key, epoch = partition.topic_partition, partition.leader_epoch
        broker = self._nodes[broker_id].broker
        follower = None if broker is None else broker.storage.replica_manager.partitions.get(key)
        if follower is None or follower.leader_epoch != epoch:
            # Its process has ended since its fetch, or it follows another leader now.
            return
        end = follower.log.log_end_offset
        least = self._starts.get((key, partition.log.topic_id, epoch), 0)
        wanted_end = max(least, partition.high_watermark)
        if end >= wanted_end:
            return
        reported_end = partition.followers[broker_id].log_end_offset
        # A fetch from before a power cut may reach the leader after it, and the leader cannot know
        # that. Source: KIP-903, whose broker epochs are not used with ZooKeeper.
        if broker_id not in self._histories[key].lossy or reported_end < wanted_end:
            self._broke(
                "R11",
                f"{key}: {broker_id} ends at {end} and is to join leader {partition.broker_id}, "
                f"epoch {epoch} from {least} on, watermark {partition.high_watermark}",
                key,
            )

    def check_metadata(self, broker: Broker) -> None:
        """Check rule C2: no leader epoch in a broker's metadata cache decreases."""
        cache = broker.metadata_cache
        heard = self._heard.get(broker.broker_id)
        if heard is None or heard.broker is not broker:
            heard = self._heard[broker.broker_id] = _ReceivedEpochs(broker)
        if heard.version == cache.version:
            return
        heard.version = cache.version
        if cache.controller_id is not None:
            self._check_controller_of(heard, f"b{cache.controller_id}")
        for topic, partitions in cache.topics.items():
            topic_id = cache.topic_ids.get(topic, b"")
            for index, partition in partitions.items():
                key = TopicPartition(topic, index)
                before = heard.epochs.get((key, topic_id), -1)
                if partition.leader_epoch < before:
                    who = f"broker {broker.broker_id}"
                    self._broke("C2", f"{who} knew epoch {before} of {key}, hears {partition}", key)
                heard.epochs[key, topic_id] = partition.leader_epoch

    def _check_controller_of(self, heard: _ReceivedEpochs, name: str) -> None:
        """Check rule C2: a broker accepts no metadata of an older controller than the last one.

        `name` is the controller in the broker's metadata cache.
        """
        epochs = self._controllers.get(name, [])
        possible = [epoch for epoch in epochs if epoch >= heard.controller_epoch]
        if possible:
            heard.controller_epoch = possible[0]
        else:
            text = f"{name}, controller of {epochs}, after one of {heard.controller_epoch}"
            self._broke("C2", f"broker {heard.broker.broker_id} hears {text}", None)
