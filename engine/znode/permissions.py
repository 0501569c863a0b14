"""Decide by the ACLs of nodes if a client may do an operation, as ZooKeeper does. Pure.

| scheme | a client has the identity | source |
|---|---|---|
| `world:anyone` | always | |
| `ip:<address>[/<bits>]` | by its address, of version 4 | the connection |
| `digest:<user>:<hash>` | with that user's password | a request of type 100 |
| `sasl:<user>` | with that user's password | the login by DIGEST-MD5 |
| `auth:` | never: a new ACL gets the client's identities in its place, but not its address | |

Source: PrepRequestProcessor.fixupACL, ZooKeeperServer.checkACL, DigestAuthenticationProvider,
IPAuthenticationProvider and SASLAuthenticationProvider of ZooKeeper 3.8.4; Z5.
Differs: an id that is null is INVALID_ACL; ZooKeeper responds MARSHALLING_ERROR.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable
from enum import IntFlag
from typing import Final, TypeAlias

from engine.znode.errors import InvalidAcl
from engine.znode.model import OPEN_ACL, NodeAclEntry

#: The identities of a client: scheme and id of each.
Identities: TypeAlias = tuple[tuple[str, str], ...]

DIGEST: Final = "digest"
IP: Final = "ip"
SASL: Final = "sasl"
_AUTH: Final = "auth"
_WORLD: Final = ("world", "anyone")
#: Texts that Java's Integer.parseInt accepts.
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,10}")
_ADDRESS_BITS: Final = 32
_PROVEN: Final = (DIGEST, SASL)


class Permission(IntFlag):
    """Permissions on a node; the numbers are ZooKeeper's."""

    READ = 1
    WRITE = 2
    CREATE = 4
    DELETE = 8
    ADMIN = 16


def permits(
    acl: tuple[NodeAclEntry, ...], permission: Permission, identities: Identities | None
) -> bool:
    """Return True if an ACL grants one of the permissions to a client with these identities.

    `identities` None is a client that may do anything.
    """
    if acl is OPEN_ACL or identities is None:
        return True
    return any(
        entry.permissions & permission and _matches(entry.scheme, entry.id, identities)
        for entry in acl
    )


def _matches(scheme: str, name: str, identities: Identities) -> bool:
    """Return True if an ACL entry's scheme and id match one of the client's identities."""
    if (scheme, name) == _WORLD:
        return True
    if scheme == IP:
        return any(own == IP and _lies_in(address, name) for own, address in identities)
    return (scheme, name) in identities


def _lies_in(address: str, network: str) -> bool:
    """Return True if an IPv4 address is in the network `address[/bits]`.

    False if one is invalid.
    """
    own, allowed = _parse_network(address), _parse_network(network)
    if own is None or allowed is None:
        return False
    ignored = _ADDRESS_BITS - allowed[1]
    return own[0] >> ignored == allowed[0] >> ignored


def _parse_network(text: str) -> tuple[int, int] | None:
    """Return address and prefix length of `address[/bits]`; None unless it is IPv4."""
    address, slash, bits = text.partition("/")
    numbers = [_parse_number(part) for part in address.split(".")]
    count = _parse_number(bits) if slash else _ADDRESS_BITS
    if len(numbers) != 4 or not 0 <= count <= _ADDRESS_BITS:
        return None
    if not all(0 <= number <= 255 for number in numbers):
        return None
    return int.from_bytes(bytes(numbers), "big"), count


def _parse_number(text: str) -> int:
    """Return a decimal number as Java parses it, -1 for any other text."""
    return int(text) if _NUMBER.fullmatch(text) else -1


def acl_to_store(
    path: str, acl: Iterable[NodeAclEntry], identities: Identities, *, has_sasl: bool
) -> tuple[NodeAclEntry, ...]:
    """Return the ACL to store for the ACL that a client has sent; raises InvalidAcl.

    `auth` entries are replaced by the client's own identities.
    """
    acl = tuple(acl)
    if acl == OPEN_ACL:
        return OPEN_ACL
    kept: dict[NodeAclEntry, None] = {}
    for entry in acl:
        if entry.scheme == _AUTH:
            own = [identity for identity in identities if identity[0] in _PROVEN]
            if not own:
                raise InvalidAcl(path)
            kept |= dict.fromkeys(NodeAclEntry(entry.permissions, *each) for each in own)
        elif _is_valid(entry, has_sasl=has_sasl):
            kept[entry] = None
        else:
            raise InvalidAcl(path)
    if not kept:
        raise InvalidAcl(path)
    found = tuple(kept)
    return OPEN_ACL if found == OPEN_ACL else found


def _is_valid(entry: NodeAclEntry, *, has_sasl: bool) -> bool:
    """Return True if an ACL entry is well-formed, so that a client can match it.

    `has_sasl`: the server has users that log in by SASL.
    """
    scheme, name = entry.scheme, entry.id
    if scheme == _WORLD[0]:
        return name == _WORLD[1]
    if scheme == DIGEST:
        # Java's split drops empty parts at the end.
        return name.rstrip(":").count(":") == 1
    if scheme == IP:
        return _parse_network(name) is not None
    return scheme == SASL and has_sasl and bool(name)


def masked_acl(
    acl: tuple[NodeAclEntry, ...], identities: Identities | None
) -> tuple[NodeAclEntry, ...]:
    """Return an ACL as a client may see it: only administrators see hashes of passwords."""
    if permits(acl, Permission.ADMIN, identities):
        return acl
    return tuple(
        entry._replace(id=f"{entry.id.partition(':')[0]}:x") if entry.scheme == DIGEST else entry
        for entry in acl
    )


def digest_identity(user_and_password: bytes) -> tuple[str, str]:
    """Return the digest identity of `user:password`."""
    # Loaded here: most clusters have no client with a digest.
    import hashlib

    user = user_and_password.partition(b":")[0].decode(errors="replace")
    digest = hashlib.sha1(user_and_password, usedforsecurity=False).digest()
    return DIGEST, f"{user}:{b64encode(digest).decode()}"
