"""Client quotas, and the choice of the quota that applies to a client.

| precedence | node | counted together |
|---|---|---|
| 1 | `/config/users/<u>/clients/<c>` | one user's client id |
| 2 | `/config/users/<u>/clients/<default>` | one user's client id |
| 3 | `/config/users/<u>` | one user |
| 4 | `/config/users/<default>/clients/<c>` | one user's client id |
| 5 | `/config/users/<default>/clients/<default>` | one user's client id |
| 6 | `/config/users/<default>` | one user |
| 7 | `/config/clients/<c>` | one client id |
| 8 | `/config/clients/<default>` | one client id |

The first one that is set is used. A client without an id has only its user's quotas. Names are
sanitized, so that none equals `<default>`.

Source: ClientQuotaManager.DefaultQuotaCallback of 3.9.1; KIP-55, KIP-124, KIP-599.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple

DEFAULT: Final = "<default>"
#: Stands for no user or no client id in a quota's entity.
NONE: Final = ""


class QuotaKind(Enum):
    """The limited quantities, with the names of their settings."""

    PRODUCE = "producer_byte_rate"
    FETCH = "consumer_byte_rate"
    REQUEST = "request_percentage"
    MUTATION = "controller_mutation_rate"


class QuotaOwner(NamedTuple):
    """A user and a client id, sanitized; NONE for an absent part."""

    user: str
    client: str


class Limit(NamedTuple):
    """A limit per second, and the user and client id whose requests are counted together."""

    counted: QuotaOwner
    per_s: float


class QuotaLimits:
    """The client quotas of one broker."""

    def __init__(self) -> None:
        self._by_kind: dict[QuotaKind, dict[QuotaOwner, float]] = {kind: {} for kind in QuotaKind}

    @property
    def is_empty(self) -> bool:
        """True if no quota is set."""
        return not any(self._by_kind.values())

    def take(self, owner: QuotaOwner, config: Mapping[str, str]) -> None:
        """Replace the quotas of a user, a client id or both by those in the entity's settings."""
        bounds = {kind: float(config[kind.value]) for kind in QuotaKind if kind.value in config}
        for kind, of_kind in self._by_kind.items():
            if kind in bounds:
                of_kind[owner] = bounds[kind]
            else:
                of_kind.pop(owner, None)

    def owners(self) -> set[QuotaOwner]:
        """Return all users, client ids and pairs of both that have a quota."""
        return {owner for of_kind in self._by_kind.values() for owner in of_kind}

    def limit_of(self, kind: QuotaKind, user: str, client: str) -> Limit | None:
        """Return the limit that applies to a client, None without one.

        The most specific quota applies, in Kafka's order of precedence.
        """
        bounds = self._by_kind[kind]
        if not bounds:
            return None
        both, of_user = QuotaOwner(user, client), QuotaOwner(user, NONE)
        if not client:
            candidates = ((of_user, of_user), (QuotaOwner(DEFAULT, NONE), of_user))
            return _first_limit(bounds, candidates)
        of_client = QuotaOwner(NONE, client)
        return _first_limit(
            bounds,
            (
                (both, both),
                (QuotaOwner(user, DEFAULT), both),
                (of_user, of_user),
                (QuotaOwner(DEFAULT, client), both),
                (QuotaOwner(DEFAULT, DEFAULT), both),
                (QuotaOwner(DEFAULT, NONE), of_user),
                (of_client, of_client),
                (QuotaOwner(NONE, DEFAULT), of_client),
            ),
        )


def _first_limit(
    bounds: Mapping[QuotaOwner, float], candidates: tuple[tuple[QuotaOwner, QuotaOwner], ...]
) -> Limit | None:
    """Return the limit of the first candidate that has a quota, None if none has.

    A candidate is the owner of the quota, and the owner whose use counts against it.
    """
    for owner, counted in candidates:
        bound = bounds.get(owner)
        if bound is not None:
            return Limit(counted, bound)
    return None
