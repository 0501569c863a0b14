"""Read client quotas and SCRAM credentials from their znodes.

| node | content |
|---|---|
| `/config/users/<u>`, `…/clients/<c>`, `/config/clients/<c>` | request quotas: `QuotaLimits` |
| `/config/users/<u>` | SCRAM credentials: `ScramCredentials` |
| `/config/ips/<a>` | connection creation rates: `AddressRates` |

After an invalid number the present quotas of the node are kept; an unreadable credential counts as
missing. Both are logged.

Source: UserConfigHandler, ClientIdConfigHandler, IpConfigHandler of 3.9.1.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final

from engine.broker.stored_config import stored_config
from engine.security.credentials import ScramCredentials
from engine.security.quota_limits import DEFAULT, NONE, QuotaLimits, QuotaOwner
from engine.znode.client import ZnodeClient
from engine.znode.errors import NoNode
from engine.znode.paths import (
    CLIENT_CONFIGS,
    CONFIG,
    IP_CONFIGS,
    USER_CONFIGS,
    config_path,
    unsanitized,
)

_log = logging.getLogger("kafka.server.DynamicBrokerConfig")

#: The kinds of entities with quotas, by the first part of their path.
QUOTA_ENTITIES: Final = (USER_CONFIGS, CLIENT_CONFIGS, IP_CONFIGS)
_RATE: Final = "connection_creation_rate"


class AddressRates:
    """Limits of connections per second by address; None means no limit."""

    def __init__(self) -> None:
        self.default: int | None = None
        self.by_address: dict[str, int] = {}

    def rate_of(self, address: str) -> int | None:
        """Return the maximal connections per second of an address, by default.

        None without a limit.
        """
        return self.by_address.get(address, self.default)


class QuotaSettings:
    """Quotas and credentials, updated from the znodes."""

    def __init__(self, znodes: ZnodeClient, address_of: Callable[[str], str | None]) -> None:
        """Create without quotas, which `load` reads from the metadata store.

        `address_of` resolves a host name; it returns None for an unknown one.
        """
        #: Request quotas by user and client id; shared with the code that enforces them.
        self.limits = QuotaLimits()
        #: Connection rates by address; shared with the listeners.
        self.rates = AddressRates()
        #: SCRAM credentials of users, which are stored in the same znodes.
        self.credentials = ScramCredentials()
        #: Called after each change of quotas.
        self.on_change: Callable[[], None] = lambda: None
        self._znodes = znodes
        self._address_of = address_of

    async def load(self) -> None:
        """Read all quotas, connection rates and SCRAM credentials from the metadata store.

        Those whose znode does not exist any more are removed.
        """
        paths = []
        for kind in QUOTA_ENTITIES:
            for name in await self._child_names(kind):
                paths.append(f"{kind}/{name}")
                if kind == USER_CONFIGS:
                    clients = f"{kind}/{name}/{CLIENT_CONFIGS}"
                    paths += [f"{clients}/{client}" for client in await self._child_names(clients)]
        known = {_owner_of(path) for path in paths if not path.startswith(IP_CONFIGS)}
        for owner in self.limits.owners() - known:
            self.limits.take(owner, {})
        self.credentials.keep(filter(None, map(_user_of, paths)))
        # The old rates apply until all new ones are read.
        rates = AddressRates()
        try:
            for path in paths:
                await self._apply(path, rates)
            self.rates.default, self.rates.by_address = rates.default, rates.by_address
        finally:
            # What was read before a lost session applies.
            self.on_change()

    async def apply(self, entity_path: str) -> None:
        """Read the quotas of the entity that a change node names, and apply them."""
        await self._apply(entity_path, self.rates)
        self.on_change()

    async def _apply(self, entity_path: str, rates: AddressRates) -> None:
        """Read one entity from its znode: a user's credentials, and quotas, or an address's rate.

        The rate of an address is stored in `rates`. Invalid quotas are logged, and the old ones
        stay.
        """
        config = await self._read(config_path(entity_path))
        user = _user_of(entity_path)
        if user is not None:
            for mechanism in self.credentials.update(user, config):
                _log.error("The %s credential of %s cannot be read", mechanism.key, user)
        try:
            if entity_path.startswith(f"{IP_CONFIGS}/"):
                self._set_rate(entity_path.partition("/")[2], config, rates)
            else:
                self.limits.take(_owner_of(entity_path), config)
        except ValueError as error:
            _log.error("Quotas of %s stay as they are: %s", entity_path, error)

    def _set_rate(self, name: str, config: Mapping[str, str], rates: AddressRates) -> None:
        """Set the connection rate of an address, or the default rate, in `rates`.

        `rates` are those in use, or those that a full load collects before they are used. Without a
        configured rate the address is removed from `rates`. An invalid rate raises ValueError, and
        the rate in use (`self.rates`) stays in force.
        """
        is_default = name == DEFAULT
        address = None if is_default else self._address_of(unsanitized(name))
        if address is None and not is_default:
            _log.error("Quotas of %s are left out: it has no address", name)
            return
        rate = self.rates.default if address is None else self.rates.by_address.get(address)
        try:
            rate = int(config[_RATE]) if _RATE in config else None
        except ValueError:
            if address is None:
                rates.default = rate
            elif rate is not None:
                # Another host of this address may have been read before.
                rates.by_address.setdefault(address, rate)
            raise
        if address is None:
            rates.default = rate
        elif rate is None:
            rates.by_address.pop(address, None)
        else:
            rates.by_address[address] = rate

    async def _child_names(self, path: str) -> list[str]:
        """Return the names of a node's children, empty if the node does not exist."""
        try:
            return await self._znodes.children(f"{CONFIG}/{path}")
        except NoNode:
            return []

    async def _read(self, path: str) -> dict[str, str]:
        """Return the settings in a znode, empty if the znode does not exist."""
        return await stored_config(self._znodes, path, subject="Quotas")


def _user_of(entity_path: str) -> str | None:
    """Return the user whose credentials are in an entity's znode; None for any other entity.

    The default user and entities with a client id have none.
    """
    kind, name, *more = entity_path.split("/")
    if kind != USER_CONFIGS or more or name == DEFAULT:
        return None
    return unsanitized(name)


def _owner_of(entity_path: str) -> QuotaOwner:
    """Return the user and client id of an entity path such as `users/a/clients/b`.

    A part that is absent is NONE.
    """
    kind, name, *more = entity_path.split("/")
    if kind == CLIENT_CONFIGS:
        return QuotaOwner(NONE, name)
    return QuotaOwner(name, more[1] if len(more) > 1 else NONE)
