"""A cluster that brokers know of, and requests put to handlers."""

from __future__ import annotations

from typing import Any

from engine.api.admission import Session, allow_all
from engine.api.exchange import EncodedResponse, Exchange
from engine.host.memory import ManualClock
from engine.host.promise import Promise
from engine.model import TopicPartition
from engine.replication.metadata_cache import BrokerNode, Endpoint, MetadataCache, PartitionMetadata
from engine.wire.codec import message_codec
from engine.wire.headers import api
from engine.wire.structs import message_class

CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAA"
CLICKS_ID = bytes(range(16))
INSIDE, OUTSIDE = "INSIDE", "OUTSIDE"


def exchange_of(name: str, version: int, listener: str = INSIDE) -> Exchange:
    """Return what surrounds a request."""
    return Exchange(
        Session("1.2.3.4:5", allow_all(), listener), api(name).key, version, 1, "tester", 0
    )


def ask(handler: Any, name: str, version: int, listener: str = INSIDE, **fields: Any) -> Any:
    """Put a request through a handler, both ways by their bytes; returns the decoded answer."""
    request = message_class(f"{name}Request")(**fields)
    codec = message_codec(f"{name}Request", version)
    decoded = codec.decode(codec.encode(request))
    reply = handler.handle(decoded, exchange_of(name, version, listener))
    if isinstance(reply, Promise):
        assert reply.is_kept, "the answer is still promised"
        reply = reply.result()
    codec = message_codec(f"{name}Response", version)
    if isinstance(reply, bytes):
        return codec.decode(reply)
    if isinstance(reply, EncodedResponse):
        return codec.decode(b"".join(bytes(part) for part in reply.parts))  # type: ignore[arg-type]
    return codec.decode(codec.encode(reply))


def cluster() -> MetadataCache:
    """Return what broker 1 of three knows; the third is down, the second has one listener."""
    cache = MetadataCache(1, CLUSTER_ID)
    brokers = [
        BrokerNode(
            1, (Endpoint(INSIDE, "one", 9092), Endpoint(OUTSIDE, "one.example", 9093)), "rack1"
        ),
        BrokerNode(2, (Endpoint(INSIDE, "two", 9092),)),
    ]
    partitions: dict[TopicPartition, PartitionMetadata | None] = {
        TopicPartition("clicks", 1): PartitionMetadata(2, 7, (2,), 0, (2, 1)),
        TopicPartition("clicks", 0): PartitionMetadata(1, 5, (1, 2), 0, (1, 2)),
        TopicPartition("orders", 0): PartitionMetadata(1, 0, (1,), 0, (1, 3), (3,)),
        TopicPartition("orphans", 0): PartitionMetadata(-1, 3, (3,), 0, (3,), (3,)),
        TopicPartition("__consumer_offsets", 0): PartitionMetadata(1, 0, (1,), 0, (1,)),
    }
    cache.update(1, brokers, partitions, {"clicks": CLICKS_ID, "orders": bytes(15) + b"\1"})
    return cache


class LookedAt(ManualClock):
    """A clock that goes on whenever somebody looks at it."""

    step_ms = 0

    def monotonic_ms(self) -> int:
        self.advance(self.step_ms)
        return super().monotonic_ms()
