"""The values in the nodes of ACLs.

```
/kafka-acl/Topic/t                  {"acls":[{"principal":"User:bob","permissionType":"Allow",
                                     "host":"*","operation":"Read"}],"version":1}
/kafka-acl-changes/acl_changes_..   TOPIC:t
/kafka-acl-extended-changes/...     {"version":1,"resourceType":"TOPIC","name":"pre",
                                     "patternType":"PREFIXED"}
```

Source: kafka.zk.ZkData, AclEntry; `znodes.md` §1.
Differs: Kafka lists the entries of a resource in the order of a hash set; we in the order given.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from engine.znode.json_text import InvalidZnodeValue, Json, decode_object, encode_json

_VERSION = 1


class AclEntry(NamedTuple):
    """The principal, host, operation and permission of one ACL of the node's resource."""

    principal: str
    #: `Allow` or `Deny`.
    permission_type: str
    host: str
    #: Name of an operation, such as `Read` or `DescribeConfigs`.
    operation: str


class AclChange(NamedTuple):
    """A resource whose ACLs changed; types in capitals, as in `TOPIC` and `PREFIXED`."""

    resource_type: str
    name: str
    pattern_type: str


def encode_acls(entries: Iterable[AclEntry]) -> bytes:
    """Encode a resource's ACLs as the JSON of its znode, in Kafka's form."""
    acls: list[Json] = [
        {
            "principal": acl.principal,
            "permissionType": acl.permission_type,
            "host": acl.host,
            "operation": acl.operation,
        }
        for acl in entries
    ]
    return encode_json({"acls": acls, "version": _VERSION})


def decode_acls(data: bytes | None, path: str) -> list[AclEntry]:
    """Decode a resource's ACLs; a node without data has none. Raises InvalidZnodeValue."""
    if not data:
        return []
    fields = decode_object(data, path)
    if fields.integer("version") != _VERSION:
        raise InvalidZnodeValue(path, f"version {_VERSION}", fields.integer("version"))
    return [
        AclEntry(
            acl.text("principal"),
            acl.text("permissionType"),
            acl.text("host"),
            acl.text("operation"),
        )
        for acl in fields.inners("acls")
    ]


def encode_acl_change(change: AclChange) -> bytes:
    """Encode the change node of a resource pattern.

    Literal patterns have the short form `Topic:name`, prefixed ones are JSON.
    """
    if change.pattern_type == "LITERAL":
        return f"{change.resource_type}:{change.name}".encode()
    return encode_json(
        {
            "version": _VERSION,
            "resourceType": change.resource_type,
            "name": change.name,
            "patternType": change.pattern_type,
        }
    )


def decode_literal_acl_change(data: bytes | None, path: str) -> AclChange:
    """Return the resource in a node of `/kafka-acl-changes`; raises InvalidZnodeValue.

    A broker reads its ACLs again then.
    """
    try:
        resource_type, separator, name = (data or b"").decode().partition(":")
    except UnicodeDecodeError as error:
        raise InvalidZnodeValue(path, "a text", f"{(data or b'')[:80]!r}") from error
    if not separator:
        raise InvalidZnodeValue(path, "a type and a name", repr(resource_type))
    return AclChange(resource_type, name, "LITERAL")


def decode_extended_acl_change(data: bytes | None, path: str) -> AclChange:
    """Return the resource in a node of `/kafka-acl-extended-changes`; raises InvalidZnodeValue.

    Such nodes announce changes of ACLs with prefixed patterns.
    """
    fields = decode_object(data, path)
    if fields.integer("version") > _VERSION:
        raise InvalidZnodeValue(path, f"version {_VERSION}", fields.integer("version"))
    return AclChange(fields.text("resourceType"), fields.text("name"), fields.text("patternType"))
