"""The short way through a broker of the requests that it gets most: produces of one usual batch.

```
frame ─ read_usual_produce ─ append_at_once ─ answer's frame
  └ unusual in any way: nothing has been done, and the dispatch table's row serves it
```

Nothing is decided here that `Produce` would decide otherwise: what is taken is what needs no
decision. For small requests the steps between the layers cost more than the append itself.
"""

from __future__ import annotations

from collections.abc import Container

from engine.api.exchange import Exchange, Session
from engine.api.produce import ADMIN_CLIENT_ID, Produce
from engine.host.ports import Clock
from engine.replication.delayed_produce import ProduceResult
from engine.replication.metadata_cache import MetadataCache
from engine.wire.headers import response_header_bytes
from engine.wire.produce_head import PRODUCE_KEY, ProduceHead, read_usual_produce

_NO_PARTITIONS: Container[int] = ()


class ProduceLane:
    """Answers whole frames; see the module's head."""

    def __init__(self, produce: Produce, metadata: MetadataCache, clock: Clock) -> None:
        self._produce = produce
        self._append = produce.manager.append_at_once
        self._metadata = metadata
        self._clock = clock

    def answer(self, frame: memoryview, session: Session) -> bytes | None:
        """Serve a request and return its answer with its header; None with nothing done."""
        found = read_usual_produce(frame)
        if found is None:
            return None
        version, correlation_id, head, records = found
        topic_partition = head[2]
        topic, index = topic_partition
        if index not in self._metadata.topics.get(topic, _NO_PARTITIONS):
            return None
        is_internal_allowed = head[0] == ADMIN_CLIENT_ID
        result = self._append(
            topic_partition, records, head[1], is_internal_allowed=is_internal_allowed
        )
        if result is None:
            return None
        if result[0] is None:
            return head.answer(correlation_id, result[1:])
        return self._refused(session, version, correlation_id, head, result)

    def _refused(
        self,
        session: Session,
        version: int,
        correlation_id: int,
        head: ProduceHead,
        result: ProduceResult,
    ) -> bytes:
        exchange = Exchange(
            session,
            PRODUCE_KEY,
            version,
            correlation_id,
            head.client_id,
            self._clock.monotonic_ms(),
        )
        body = self._produce.encoded({head.topic_partition: result}, exchange)
        return response_header_bytes(PRODUCE_KEY, version, correlation_id) + body
