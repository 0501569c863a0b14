"""Requests for thousands of rows, served a few rows at a time, with other work of the loop between.

```
request of 10 000 rows ──> 16 rows ──> handler ──> response of 16 rows, encoded ── next 16 …
                                        promises are awaited when all have begun
```

For APIs with independent rows, whose responses have one row for each. A request that names a row
twice is passed to the handler as a whole, which refuses duplicates.

The metadata that rows are answered from may change between two turns, as between two threads of
Kafka's; the row of one topic is consistent. The connection's next request begins after the
response, as in Kafka.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import NamedTuple

from engine.api.exchange import EncodedRows, Exchange, Handled, Handler
from engine.api.promised import in_order, promised
from engine.api.response_errors import error_counts
from engine.host.promise import Promise
from engine.host.turns import LoopTurns
from engine.limits import ROWS_PER_SHARE
from engine.wire.row_bytes import encode_rows
from engine.wire.structs import Message


class Rows(NamedTuple):
    """The array fields of an API's request and response, and the names of their rows."""

    api_name: str
    requested: str
    answered: str
    name_of: Callable[[Message], Hashable]
    #: The number of rows that are served before the time of the share is checked.
    at_once: int = ROWS_PER_SHARE


class _Parts:
    """The promised responses to the portions of a request, which are abandoned together."""

    def __init__(self, parts: Sequence[Promise[Message]]) -> None:
        self._parts = parts

    def abandon(self) -> None:
        """Abandon the promised responses of all portions, as when the client disconnects."""
        for part in self._parts:
            part.abandon()


def _promise_all(parts: Sequence[Promise[Message]]) -> Promise[None]:
    """Return a promise that is kept when all `parts` are kept, or when one has failed."""
    all_kept: Promise[None] = Promise()
    all_kept.source = _Parts(parts)
    missing = {id(part) for part in parts}

    def on_part_settled(part: Promise[Message]) -> None:
        """Keep the common promise if all parts are kept now, or if one has failed."""
        missing.discard(id(part))
        if not all_kept.is_kept and (part.error is not None or not missing):
            all_kept.keep(None)

    for part in parts:
        part.watch(partial(on_part_settled, part))
    if not parts:
        all_kept.keep(None)
    return all_kept


class InTurns:
    """A handler that serves large requests in several turns of the loop."""

    def __init__(self, handler: Handler, rows: Rows, turns: LoopTurns) -> None:
        self._handler = handler
        self._rows = rows
        self._turns = turns

    def handle(self, request: Message, exchange: Exchange) -> Handled:
        """Serve a request by the handler: at once, or row by row in turns if it has many rows.

        Returns the response or a promise of it. A request that names a row twice is served at once,
        because its handler treats duplicates.
        """
        rows = getattr(request, self._rows.requested)
        if rows is None or len(rows) <= ROWS_PER_SHARE or not self._are_single(rows):
            return self._handler(request, exchange)
        return in_order(promised(self._serve_in_turns(request, rows, exchange)))

    def _are_single(self, rows: Sequence[Message]) -> bool:
        """Return True if no two rows have the same name."""
        return len(set(map(self._rows.name_of, rows))) == len(rows)

    async def _serve_in_turns(
        self, request: Message, rows: Sequence[Message], exchange: Exchange
    ) -> EncodedRows:
        """Serve the rows in portions, each in a turn of the event loop; return all encoded rows."""
        share = self._turns.begin()
        begun: list[EncodedRows | Promise[Message]] = []
        at_once = self._rows.at_once
        for start in range(0, len(rows), at_once):
            if share.is_over():
                await share.next()
            some = copy.copy(request)
            setattr(some, self._rows.requested, rows[start : start + at_once])
            handled = self._handler(some, exchange)
            begun.append(self._encode_if_kept(handled, exchange))
        return await self._join_parts(begun, exchange)

    async def _join_parts(
        self, begun: Sequence[EncodedRows | Promise[Message]], exchange: Exchange
    ) -> EncodedRows:
        """Wait for the responses of all portions and join their encoded rows in request order."""
        await _promise_all([each for each in begun if isinstance(each, Promise)])
        share = self._turns.begin()
        message: Message = None
        row_count = 0
        parts: list[bytes] = []
        errors: Counter[int] = Counter()
        for each in begun:
            if share.is_over():
                await share.next()
            part = self._encode(await each, exchange) if isinstance(each, Promise) else each
            message = part.message
            row_count += part.row_count
            parts += part.parts
            errors.update(part.errors)
        return EncodedRows(message, self._rows.answered, row_count, parts, errors)

    def _encode_if_kept(
        self, handled: Handled, exchange: Exchange
    ) -> EncodedRows | Promise[Message]:
        """Encode a portion's response if it is complete.

        Returns a promise that is not kept unchanged. The objects of a response take ten times the
        memory of its bytes.
        """
        if not isinstance(handled, Promise):
            return self._encode(handled, exchange)
        if handled.is_kept and handled.error is None:
            return self._encode(handled.result(), exchange)
        return handled

    def _encode(self, response: Message, exchange: Exchange) -> EncodedRows:
        """Encode a portion's rows now, so that its row objects can be freed."""
        field = self._rows.answered
        rows = getattr(response, field)
        content = encode_rows(self._rows.api_name, exchange.api_version, response, field)
        empty = copy.copy(response)
        setattr(empty, field, [])
        errors = error_counts(self._rows.api_name, response)
        return EncodedRows(empty, field, len(rows), [content], errors)
