"""The valid operations of each resource type. Source: AclEntry.supportedOperations of 3.9.1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from engine.security.acls import AclOperation, AclResource, from_number

_Op: Final = AclOperation
#: In the order of 3.9.1.
SUPPORTED_OPERATIONS: Final[Mapping[AclResource, tuple[AclOperation, ...]]] = {
    AclResource.TOPIC: (
        _Op.READ,
        _Op.ALL,
        _Op.ALTER_CONFIGS,
        _Op.DESCRIBE_CONFIGS,
        _Op.DELETE,
        _Op.WRITE,
        _Op.ALTER,
        _Op.CREATE,
        _Op.DESCRIBE,
    ),
    AclResource.GROUP: (_Op.READ, _Op.DELETE, _Op.DESCRIBE, _Op.ALL),
    AclResource.CLUSTER: (
        _Op.CREATE,
        _Op.CLUSTER_ACTION,
        _Op.DESCRIBE_CONFIGS,
        _Op.ALTER_CONFIGS,
        _Op.IDEMPOTENT_WRITE,
        _Op.ALTER,
        _Op.DESCRIBE,
        _Op.ALL,
    ),
    AclResource.TRANSACTIONAL_ID: (_Op.DESCRIBE, _Op.WRITE, _Op.ALL),
    AclResource.DELEGATION_TOKEN: (_Op.DESCRIBE, _Op.ALL),
    AclResource.USER: (_Op.CREATE_TOKENS, _Op.DESCRIBE_TOKENS, _Op.ALL),
}
#: Additional operations of 4.0 and later.
SUPPORTED_SINCE_FOUR: Final[Mapping[AclResource, tuple[AclOperation, ...]]] = {
    AclResource.GROUP: (_Op.ALTER_CONFIGS, _Op.DESCRIBE_CONFIGS),
    AclResource.TRANSACTIONAL_ID: (_Op.TWO_PHASE_COMMIT,),
}


def operation_of_broker(number: int) -> AclOperation:
    """Return the operation that a number means to a broker of 3.9.1.

    UNKNOWN for an unknown number and for the operations of later releases.
    """
    operation = from_number(AclOperation, number)
    return AclOperation.UNKNOWN if operation is AclOperation.TWO_PHASE_COMMIT else operation
