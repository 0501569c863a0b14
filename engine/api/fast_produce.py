"""The fast path of the most frequent requests: produces of one batch.

```
frame ─ read_produce_fast ─ append_records_fast ─┬─ the response's frame
  │                                               └─ acks=-1: a promise of it
  └ anything else: nothing has been done, and the dispatch table's row serves it
```

Only requests are taken that need no decision of `Produce`: nothing is decided in another way
here. For small requests the steps between the layers cost more than the append itself.
"""

from __future__ import annotations

from typing import TypeAlias

from engine.api.admission import AclOperation, AclResource, Session
from engine.api.dispatch import FastResponse
from engine.api.exchange import Exchange
from engine.api.produce import Produce
from engine.host.ports import Clock
from engine.host.promise import Promise
from engine.replication.delayed_produce import ProduceResult, ProduceResults
from engine.replication.metadata_cache import MetadataCache
from engine.wire.fast_produce_bytes import PRODUCE_KEY, ProduceHead, read_produce_fast
from engine.wire.headers import response_header_bytes

#: Version, correlation id, the fields before the records, records.
FastRequest: TypeAlias = tuple[int, int, ProduceHead, memoryview]


class FastProduce:
    """Answers complete frames of Produce; see the module's docstring."""

    def __init__(self, produce: Produce, metadata_cache: MetadataCache, clock: Clock) -> None:
        """Create the fast path of Produce; `produce` is the general path's handler."""
        self._produce = produce
        self._append_fast = produce.replica_manager.append_records_fast
        self._is_known = metadata_cache.is_known
        self._clock = clock

    def answer(
        self, frame: memoryview, session: Session
    ) -> FastResponse | Promise[FastResponse] | None:
        """Serve a Produce of one batch; return the response with its header, or a promise of it.

        Returns None, with nothing done, if the general path must serve the request. It checks that
        the client may write to the topic, unless nothing can be denied to the client.
        """
        request = read_produce_fast(frame)
        if request is None:
            return None
        version, correlation_id, head, records = request
        topic_partition = head.topic_partition
        if not self._is_known(topic_partition) or not (
            session.may_take_fast_path
            or session.is_admitted(AclOperation.WRITE, AclResource.TOPIC, topic_partition.topic)
        ):
            return None
        appended = self._append_fast(
            topic_partition,
            records,
            head.acks,
            head.timeout_ms,
            is_internal_allowed=head.is_admin,
        )
        if not isinstance(appended, ProduceResult):
            return None if appended is None else self._respond_later(appended, request, session)
        error, base_offset, append_time_ms, log_start = appended
        if error is None:
            return head.answer(correlation_id, base_offset, append_time_ms, log_start)
        return self._encode_refusal(session, version, correlation_id, head, appended)

    def _respond_later(
        self, appended: Promise[ProduceResults], request: FastRequest, session: Session
    ) -> Promise[FastResponse]:
        """Promise the response to a request with acks=all, whose batch waits for followers."""
        version, correlation_id, head, _ = request

        def response(results: ProduceResults) -> FastResponse:
            """Encode the only partition's result: the fast form, or the error's general form."""
            result = results[head.topic_partition]
            error, base_offset, append_time_ms, log_start = result
            if error is None:
                return head.answer(correlation_id, base_offset, append_time_ms, log_start)
            return self._encode_refusal(session, version, correlation_id, head, result)

        return appended.then(response)

    def _encode_refusal(
        self,
        session: Session,
        version: int,
        correlation_id: int,
        head: ProduceHead,
        result: ProduceResult,
    ) -> FastResponse:
        """Return the response to a batch that was refused, as the general path encodes it."""
        exchange = Exchange(
            session,
            PRODUCE_KEY,
            version,
            correlation_id,
            head.client_id,
            self._clock.monotonic_ms(),
        )
        encoded = self._produce.encode_all({head.topic_partition: result}, exchange)
        header = response_header_bytes(PRODUCE_KEY, version, correlation_id)
        return encoded._replace(parts=[header, *encoded.parts])
