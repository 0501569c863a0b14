"""Client quotas in znodes: changing and listing.

```
/config/users/<u> · /config/users/<u>/clients/<c> · /config/clients/<c> · /config/ips/<a>
```

A change is written like other settings, with a change note (`config_admin.py`) for the brokers.

Source: ZN:config; ZkAdminManager.alterClientQuotas, describeClientQuotas; KIP-546, KIP-612.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import NamedTuple

from engine.admin.config_admin import ConfigAdmin
from engine.admin.quota_entities import (
    CLIENT_ID,
    IP,
    USER,
    Entity,
    QuotaChange,
    QuotaFilter,
    apply_quota_changes,
    check_components,
    name_of,
    node_of,
    path_of,
    quotas_in,
)
from engine.config.key import ip_keys, quota_keys
from engine.znode.client import ZnodeClient
from engine.znode.errors import NoNode
from engine.znode.paths import CLIENT_CONFIGS, CONFIG, IP_CONFIGS, USER_CONFIGS


class EntityQuotas(NamedTuple):
    """An entity with its quotas."""

    entity: Entity
    quotas: dict[str, float]


class QuotaAdmin:
    """Changes and lists client quotas."""

    def __init__(
        self, znodes: ZnodeClient, configs: ConfigAdmin, address_of: Callable[[str], str | None]
    ) -> None:
        """Create the reader and writer of client quotas in ZooKeeper.

        `address_of` resolves a host name; it returns None for an unknown one.
        """
        self._znodes = znodes
        self._configs = configs
        self._address_of = address_of

    async def alter(
        self, entity: Entity, changes: Sequence[QuotaChange], *, validate_only: bool
    ) -> None:
        """Change the quotas of an entity (AlterClientQuotas).

        Raises ApiError and the errors of the store. `validate_only` writes nothing.
        """
        node = node_of(entity, lambda host: self._address_of(host) is not None)
        await self._configs.change(
            node.path,
            lambda current: apply_quota_changes(current, changes, node.keys),
            validate_only=validate_only,
        )

    async def describe(self, wanted: QuotaFilter) -> list[EntityQuotas]:
        """Return the entities that a filter matches, with their quotas (DescribeClientQuotas).

        Raises ApiError and the errors of the store.
        """
        check_components(wanted.components)
        await self._check_exact(wanted)
        found = []
        async for entity in self._iter_entities():
            if wanted.matches(entity):
                config = await self._configs.read(path_of(entity))
                quotas = quotas_in(config, ip_keys() if IP in entity else quota_keys())
                if quotas:
                    found.append(EntityQuotas(entity, quotas))
        return found

    async def _check_exact(self, wanted: QuotaFilter) -> None:
        """Read the node of a filter that names one entity, to raise the store's error for its name.

        An empty name gives no valid path.
        """
        exact = {each.kind: each.name for each in wanted.components if not each.is_any}
        is_one = wanted.is_strict or IP in exact or len(exact) > 1
        if exact and is_one and len(exact) == len(wanted.components):
            await self._configs.read(path_of(exact))

    async def _iter_entities(self) -> AsyncIterator[Entity]:
        """Yield all entities that have a znode: users, client ids, pairs of both, addresses."""
        users = await self._child_names(USER_CONFIGS)
        for user in users:
            yield {USER: name_of(user)}
        for client in await self._child_names(CLIENT_CONFIGS):
            yield {CLIENT_ID: name_of(client)}
        for user in users:
            for client in await self._child_names(f"{USER_CONFIGS}/{user}/{CLIENT_CONFIGS}"):
                yield {USER: name_of(user), CLIENT_ID: name_of(client)}
        for ip in await self._child_names(IP_CONFIGS):
            yield {IP: name_of(ip)}

    async def _child_names(self, path: str) -> list[str]:
        """Return the names of a config node's children; empty if the node does not exist."""
        try:
            return await self._znodes.children(f"{CONFIG}/{path}")
        except NoNode:
            return []
