"""The table of the APIs that are served: one row each.

What is advertised is what is in the table. A row says which versions are served, who may call it,
and whether only brokers do; a test fails for a row without an authorization rule.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple, TypeAlias

from engine.api.exchange import Handler, Session
from engine.wire.headers import api


class Rule(Enum):
    """Who may call an API."""

    ANYONE = "anyone, also before authentication"
    PER_RESOURCE = "the handler checks each topic, group or transaction"
    CLUSTER_DESCRIBE = "Describe on the cluster"
    CLUSTER_ALTER = "Alter on the cluster"
    CLUSTER_ACTION = "ClusterAction on the cluster: brokers only"


#: Makes a request of a body (a view of the frame) and the version; raises WireError.
RequestDecoder: TypeAlias = Callable[[memoryview, int], Any]


#: Serves a whole frame of the usual form and returns its answer; None with nothing done.
Lane: TypeAlias = Callable[[memoryview, Session], bytes | None]


def _no_lane(_frame: memoryview, _session: Session) -> bytes | None:
    return None


class ApiRow(NamedTuple):
    """One API as it is served; versions are inclusive.

    `decode` reads requests in place of the table codec, for a handler that knows its form. A row
    that is not advertised is served to whoever asks, and ApiVersions is silent about it.
    """

    key: int
    name: str
    lowest: int
    highest: int
    rule: Rule
    handler: Handler
    is_inter_broker: bool = False
    decode: RequestDecoder | None = None
    is_advertised: bool = True


class DispatchTable:
    """Rows by API key."""

    def __init__(self) -> None:
        self._rows: dict[int, ApiRow] = {}
        #: Is asked before the rows are, for every frame that has no open request before it.
        self.lane: Lane = _no_lane
        self.lane_key = -1

    def serve(
        self,
        name: str,
        handler: Handler,
        rule: Rule,
        *,
        highest: int | None = None,
        is_inter_broker: bool = False,
        decode: RequestDecoder | None = None,
        is_advertised: bool = True,
        lane: Lane | None = None,
    ) -> None:
        """Add a row for all stable versions of an API, or those up to `highest`.

        One of the rows may have a lane.
        """
        found = api(name)
        assert found.key not in self._rows, name
        top = found.stable.highest if highest is None else highest
        self._rows[found.key] = ApiRow(
            found.key,
            name,
            found.stable.lowest,
            top,
            rule,
            handler,
            is_inter_broker,
            decode,
            is_advertised,
        )
        if lane is not None:
            assert self.lane_key < 0, name
            self.lane, self.lane_key = lane, found.key

    def row(self, key: int) -> ApiRow | None:
        """Return the row of a key, None if it is not served."""
        return self._rows.get(key)

    def rows(self) -> list[ApiRow]:
        """Return all rows by rising key."""
        return [self._rows[key] for key in sorted(self._rows)]
