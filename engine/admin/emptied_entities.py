"""Deletion of the nodes of users, clients and addresses that have no settings left.

```
/config/users/<u>/clients/<c>    with the last <c> also   …/clients
                                 and then                 /config/users/<u>, if it has no settings
```

Otherwise the nodes of all users that ever had a quota would remain. A node with children remains
without settings.

Source: AdminZkClient.tryCleanQuotaNodes of 3.9.1.
Differs: all are deleted in one transaction with the change note, each by its version.
"""

from __future__ import annotations

from engine.znode.client import ZnodeClient
from engine.znode.errors import BadVersion, NoNode, NotEmpty
from engine.znode.model import Create, Delete
from engine.znode.names import name_of, parent_of
from engine.znode.paths import CLIENT_CONFIGS, CONFIG, IP_CONFIGS, USER_CONFIGS
from engine.znode.values import decode_config


def goes_when_empty(entity_path: str) -> bool:
    """Return True if an entity's znode is deleted once it has no settings: a user, client or IP.

    `entity_path` is relative to `/config`.
    """
    return entity_path.partition("/")[0] in (USER_CONFIGS, CLIENT_CONFIGS, IP_CONFIGS)


async def has_children(znodes: ZnodeClient, path: str) -> bool:
    """Return True if a node has children, which are other entities: then it must not be deleted."""
    return bool(await _child_names(znodes, path))


async def delete_emptied(znodes: ZnodeClient, path: str, version: int | None, note: Create) -> bool:
    """Delete an entity's node without settings and parents that become empty; write the note.

    `version` is that of the node, None if there is none. Returns False if the nodes have changed
    since they were read.
    """
    if version is None:
        await znodes.multi([note])
        return True
    deletes = [Delete(path, version)]
    clients = parent_of(path)
    is_of_user = clients.startswith(f"{CONFIG}/{USER_CONFIGS}/")
    if is_of_user and await _child_names(znodes, clients) == [name_of(path)]:
        deletes.append(Delete(clients))
        user = parent_of(clients)
        try:
            data, stat = await znodes.get(user)
        except NoNode:
            return False
        if not decode_config(data, user) and await _child_names(znodes, user) == [CLIENT_CONFIGS]:
            deletes.append(Delete(user, stat.version))
    try:
        await znodes.multi([*deletes, note])
    except (BadVersion, NoNode, NotEmpty) as error:
        if error.operation_index == len(deletes):
            raise
        return False
    return True


async def _child_names(znodes: ZnodeClient, path: str) -> list[str]:
    """Return the names of a node's children; empty if the node does not exist."""
    try:
        return await znodes.children(path)
    except NoNode:
        return []
