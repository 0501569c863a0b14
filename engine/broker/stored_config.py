"""Read the settings in an entity's znode, for readers that ignore a damaged node."""

from __future__ import annotations

import logging

from engine.znode.client import ZnodeClient
from engine.znode.errors import NodeError, NoNode
from engine.znode.json_text import InvalidZnodeValue
from engine.znode.values import decode_config

_log = logging.getLogger("kafka.server.DynamicBrokerConfig")


async def stored_config(znodes: ZnodeClient, path: str, *, subject: str) -> dict[str, str]:
    """Return an entity's settings; empty if its node is absent or cannot be parsed.

    An error is logged with `subject`, such as "Quotas".
    """
    try:
        data, _ = await znodes.get(path)
        return decode_config(data, path)
    except NoNode:
        return {}
    except (InvalidZnodeValue, NodeError) as error:
        _log.error("%s are left out: %s", subject, error)
        return {}
