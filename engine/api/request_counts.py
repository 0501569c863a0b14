"""How many requests of clients came, by API and version.

Those on the fast path are counted by the first four bytes of their frame, which are both: one
addition for each. The fast path of Fetch serves followers alone.

Source: RequestMetrics of 3.9.1, which counts a fetch for the client that sent it, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final, NamedTuple

from engine.wire.headers import api

VERSION_BITS: Final = 16
_FETCH: Final = api("Fetch").key
_VERSION_MASK: Final = (1 << VERSION_BITS) - 1


class RequestCount(NamedTuple):
    """The requests of a name and version."""

    name: str
    version: int
    request_count: int


class RequestCounts:
    """The requests that came to one broker over its listeners."""

    def __init__(self) -> None:
        #: Of the fast paths, and of all others, by API key and version in one number.
        self.fast: dict[int, int] = {}
        self.general: dict[int, int] = {}
        #: Fetches of followers among the others, by version.
        self.of_followers: defaultdict[int, int] = defaultdict(int)

    def rows(self) -> Iterator[RequestCount]:
        """Yield the counts, those of fetches also by who sent them."""
        for number in sorted(self.fast.keys() | self.general.keys()):
            key, version = number >> VERSION_BITS, number & _VERSION_MASK
            fast, other = self.fast.get(number, 0), self.general.get(number, 0)
            yield RequestCount(api(key).name, version, fast + other)
            if key == _FETCH:
                of_followers = fast + self.of_followers.get(version, 0)
                of_consumers = fast + other - of_followers
                if of_consumers:
                    yield RequestCount("FetchConsumer", version, of_consumers)
                if of_followers:
                    yield RequestCount("FetchFollower", version, of_followers)
