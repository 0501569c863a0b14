"""The controller election: a transaction that succeeds for one broker only.

```
multi { create ephemeral /controller · set /controller_epoch = old + 1, if no other broker did }
```

Source: C1, CTL-2, CTL-3, ZN:election; KafkaZkClient.registerControllerAndIncrementControllerEpoch.
"""

from __future__ import annotations

from contextlib import suppress

from engine.controller.guarded_znodes import ControllerMoved
from engine.znode.client import ZnodeClient
from engine.znode.errors import BadVersion, NodeExists, NoNode, ZnodeConnectionLost
from engine.znode.model import Create, SetData, Stat
from engine.znode.paths import CONTROLLER, CONTROLLER_EPOCH
from engine.znode.values import (
    ControllerRegistration,
    decode_controller_epoch,
    encode_controller,
    encode_controller_epoch,
)

_NO_EPOCH = 0


async def register_controller(client: ZnodeClient, broker_id: int, now_ms: int) -> tuple[int, int]:
    """Create `/controller` and raise `/controller_epoch`, both or none.

    Returns the new controller epoch, and the znode version of `/controller_epoch`. Raises
    ControllerMoved if another broker became the controller first.

    Source: ZN:election.
    """
    old_epoch, version = await _read_epoch(client)
    epoch = old_epoch + 1
    registration = encode_controller(ControllerRegistration(broker_id, now_ms))
    try:
        results = await client.multi(
            (
                Create(CONTROLLER, registration, ephemeral=True),
                SetData(CONTROLLER_EPOCH, encode_controller_epoch(epoch), version),
            )
        )
    except (NodeExists, BadVersion, NoNode) as error:
        raise ControllerMoved("another broker was first") from error
    except ZnodeConnectionLost:
        # The transaction may have been applied.
        if await _was_applied(client, epoch):
            return epoch, version + 1
        raise
    _, stat = results
    assert isinstance(stat, Stat)
    return epoch, stat.version


async def _read_epoch(client: ZnodeClient) -> tuple[int, int]:
    """Return the controller epoch and its znode version; create the node if it is missing."""
    try:
        data, stat = await client.get(CONTROLLER_EPOCH)
    except NoNode:
        with suppress(NodeExists):
            await client.create(CONTROLLER_EPOCH, encode_controller_epoch(_NO_EPOCH))
        data, stat = await client.get(CONTROLLER_EPOCH)
    return decode_controller_epoch(data, CONTROLLER_EPOCH), stat.version


async def _was_applied(client: ZnodeClient, epoch: int) -> bool:
    """True if this session owns `/controller` and the controller epoch is `epoch`.

    Then the transaction of the registration was applied, and only its response was lost.
    """
    stat = await client.exists(CONTROLLER)
    data, _ = await client.get(CONTROLLER_EPOCH)
    is_owner = stat is not None and stat.ephemeral_owner == client.session_id
    return is_owner and decode_controller_epoch(data, CONTROLLER_EPOCH) == epoch
