"""The settings that a znode has of an entity, for readers that go on where a node is damaged."""

from __future__ import annotations

import logging

from engine.znode.client import ZnodeClient
from engine.znode.errors import NodeError, NoNode
from engine.znode.json_text import InvalidZnodeValue
from engine.znode.values import decode_config

_log = logging.getLogger("kafka.server.DynamicBrokerConfig")


async def stored_config(znodes: ZnodeClient, path: str, *, subject: str) -> dict[str, str]:
    """Return an entity's settings; none if it has no node, or a node that cannot be read.

    The log names the `subject` that is left out.
    """
    try:
        data, _ = await znodes.get(path)
        return decode_config(data, path)
    except NoNode:
        return {}
    except (InvalidZnodeValue, NodeError) as error:
        _log.error("%s are left out: %s", subject, error)
        return {}
