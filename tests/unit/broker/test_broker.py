"""A whole broker over a restart."""

from __future__ import annotations

from engine.host.coroutine import drive
from engine.wire.structs import message_class
from tests.unit.broker.memory_broker import MemoryBroker


def create(stage: MemoryBroker, *names: str) -> None:
    request = message_class("CreateTopicsRequest")
    topics = [
        request.CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in names
    ]
    reply = stage.connect().ask("CreateTopics", 7, topics=topics, timeout_ms=1000)
    assert [0] * len(names) == [topic.error_code for topic in reply.topics]


def test_all_topics_are_known_from_the_controllers_first_word_on() -> None:
    first = MemoryBroker().start()
    create(first, "a", "b")
    first.stop()
    again = MemoryBroker(first.files, first.store)
    drive(again.broker.start()).result()
    cache = again.broker.cache
    told: list[dict[str, int]] = []
    cache.on_update(lambda _: told.append({name: len(cache.topics[name]) for name in cache.topics}))
    again.timers.run_until_idle()
    assert told
    assert [{"a": 2, "b": 2}] * len(told) == told
