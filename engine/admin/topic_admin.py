"""Creating and deleting topics and adding partitions, on the broker that is the controller.

```
check (topic_creation, topic_growth) ── refused: its error
   │
write   create   /config/topics/t, /brokers/topics/t      one transaction, in this order
        grow     /brokers/topics/t over the version that was read
        delete   /admin/delete_topics/t
   │                    the controller hears of it by its watches and does the rest
wait    until this broker's metadata shows it, or the timeout (topic_waiting)
```

With a timeout of 0 or less nothing waits: what was written is answered with REQUEST_TIMED_OUT.

Source: ZkAdminManager, AdminZkClient; ZN delete topic.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any

from engine.admin.admin_ports import AdminPorts
from engine.admin.topic_creation import TopicCreation
from engine.admin.topic_growth import MorePartitions, TopicGrowth
from engine.admin.topic_outcomes import OnOutcomes, TopicOutcome, with_late
from engine.admin.topic_rules import NewTopic, is_name
from engine.admin.topic_waiting import TopicWaiting
from engine.config.broker_config import BrokerConfig
from engine.controller.grouped_writes import write_groups
from engine.errors import EngineError
from engine.host.coroutine import drive
from engine.kafka_errors import NONE, UNKNOWN_SERVER_ERROR, UNKNOWN_TOPIC_OR_PARTITION
from engine.znode.errors import NodeError, NodeExists
from engine.znode.model import Create
from engine.znode.paths import delete_topic_path, topic_path


class TopicAdmin:
    """Topic requests of one broker; the caller has checked that it is the controller."""

    def __init__(self, config: BrokerConfig, ports: AdminPorts) -> None:
        self._client = ports.znodes
        self._creation = TopicCreation(config, ports)
        self._growth = TopicGrowth(ports.znodes)
        self._waiting = TopicWaiting(ports.cache, ports.clock, ports.timers)

    def on_metadata(self, topics: Iterable[str]) -> None:
        """Answer what waited for topics; call it after the metadata of any was updated."""
        self._waiting.check(topics)

    # -- create --------------------------------------------------------------------------------

    def create_topics(
        self,
        topics: Sequence[NewTopic],
        on_done: OnOutcomes,
        *,
        timeout_ms: int,
        validate_only: bool = False,
        describe: bool = True,
    ) -> None:
        """Create topics of distinct names; `describe` tells their settings in the outcome."""

        def wait(outcomes: dict[str, TopicOutcome]) -> None:
            counts = {
                name: each.partition_count for name, each in outcomes.items() if each.code == NONE
            }
            if validate_only or not counts:
                on_done(outcomes)
                return
            self._await_leaders(outcomes, counts, timeout_ms, on_done)

        names = [topic.name for topic in topics]
        work = self._creation.create(topics, validate_only=validate_only, describe=describe)
        _run(names, work, wait)

    # -- delete --------------------------------------------------------------------------------

    def delete_topics(self, topics: Sequence[str], on_done: OnOutcomes, *, timeout_ms: int) -> None:
        """Ask for the deletion of topics; one that is asked for already is waited for."""

        def wait(outcomes: dict[str, TopicOutcome]) -> None:
            going = [name for name, each in outcomes.items() if each.code == NONE]
            if not going:
                on_done(outcomes)
            elif timeout_ms <= 0:
                on_done(with_late(outcomes, going))
            else:
                self._waiting.for_removal(
                    going, timeout_ms, lambda late: on_done(with_late(outcomes, late))
                )

        _run(topics, self._delete(topics), wait)

    async def _delete(self, topics: Sequence[str]) -> dict[str, TopicOutcome]:
        outcomes: dict[str, TopicOutcome] = {}
        known = []
        for topic in topics:
            if not (is_name(topic) and await self._client.exists(topic_path(topic))):
                outcomes[topic] = TopicOutcome(UNKNOWN_TOPIC_OR_PARTITION)
            else:
                known.append(topic)
        groups = [(Create(delete_topic_path(topic)),) for topic in known]
        results = await write_groups(self._client.multi, groups)
        for topic, result in zip(known, results, strict=True):
            is_refused = isinstance(result, NodeError) and not isinstance(result, NodeExists)
            outcomes[topic] = TopicOutcome(UNKNOWN_SERVER_ERROR if is_refused else NONE)
        return outcomes

    # -- more partitions -----------------------------------------------------------------------

    def create_partitions(
        self,
        topics: Sequence[MorePartitions],
        on_done: OnOutcomes,
        *,
        timeout_ms: int,
        validate_only: bool = False,
    ) -> None:
        """Add partitions to topics of distinct names."""

        def wait(outcomes: dict[str, TopicOutcome]) -> None:
            counts = {
                topic.name: topic.new_count for topic in topics if outcomes[topic.name].code == NONE
            }
            if validate_only or not counts:
                on_done(outcomes)
                return
            self._await_leaders(outcomes, counts, timeout_ms, on_done)

        names = [topic.name for topic in topics]
        _run(names, self._growth.grow(topics, validate_only=validate_only), wait)

    # -- waiting -------------------------------------------------------------------------------

    def _await_leaders(
        self,
        outcomes: dict[str, TopicOutcome],
        counts: Mapping[str, int],
        timeout_ms: int,
        on_done: OnOutcomes,
    ) -> None:
        if timeout_ms <= 0:
            on_done(with_late(outcomes, counts))
            return
        self._waiting.for_leaders(
            counts, timeout_ms, lambda late: on_done(with_late(outcomes, late))
        )


def _run(
    names: Sequence[str],
    work: Coroutine[Any, None, dict[str, TopicOutcome]],
    wait: Callable[[dict[str, TopicOutcome]], None],
) -> None:
    """Run the writing part of a request; a store that fails fails all its topics."""
    promise = drive(work)

    def finish() -> None:
        try:
            outcomes = promise.result()
        except EngineError:
            outcomes = dict.fromkeys(names, TopicOutcome(UNKNOWN_SERVER_ERROR))
        wait(outcomes)

    promise.watch(finish)
