"""The values in the nodes of delegation tokens.

```
/delegation_token/tokens/<id>                   {"issueTimestamp":…,"renewers":["User%3Abob"],
                                                 "tokenRequester":"User%3Aalice","tokenId":"…",
                                                 "owner":"User%3Aalice","expiryTimestamp":…,
                                                 "maxTimestamp":…,"version":3}
/delegation_token/token_changes/token_change_S  <id>
```

Principals are sanitized. Versions 1 and 2 have no requester: it is the owner. The HMAC is in
no node: each broker computes it from the id.

Source: DelegationTokenManager.toJsonCompatibleMap and fromBytes, DelegationTokenInfoZNode; nodes
that a 3.9.1 broker wrote.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from engine.znode.json_text import InvalidZnodeValue, decode_object, encode_json
from engine.znode.paths import sanitized, unsanitized

_VERSION: Final = 3


class TokenNode(NamedTuple):
    """A token in its node; times are in ms."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int


def encode_token(token: TokenNode) -> bytes:
    """Encode a delegation token as the JSON of its znode, in Kafka's form."""
    return encode_json(
        {
            "issueTimestamp": token.issued_ms,
            "renewers": [sanitized(renewer) for renewer in token.renewers],
            "tokenRequester": sanitized(token.requester),
            "tokenId": token.token_id,
            "owner": sanitized(token.owner),
            "expiryTimestamp": token.expires_ms,
            "maxTimestamp": token.max_ms,
            "version": _VERSION,
        }
    )


def decode_token(data: bytes | None, path: str) -> TokenNode:
    """Decode a delegation token; one without a requester was requested by its owner.

    Raises InvalidZnodeValue.
    """
    fields = decode_object(data, path)
    version = fields.integer("version")
    if not 1 <= version <= _VERSION:
        raise InvalidZnodeValue(path, f"a version of 1 to {_VERSION}", version)
    owner = unsanitized(fields.text("owner"))
    has_requester = fields.has("tokenRequester")
    return TokenNode(
        fields.text("tokenId"),
        owner,
        unsanitized(fields.text("tokenRequester")) if has_requester else owner,
        tuple(unsanitized(renewer) for renewer in fields.texts("renewers")),
        fields.long("issueTimestamp"),
        fields.long("expiryTimestamp"),
        fields.long("maxTimestamp"),
    )


def decode_token_change(data: bytes | None, path: str) -> str:
    """Decode a change note: the id of the changed token. Raises InvalidZnodeValue."""
    try:
        token_id = (data or b"").decode()
    except UnicodeDecodeError as error:
        raise InvalidZnodeValue(path, "a text", repr(data)) from error
    if not token_id or "/" in token_id:
        raise InvalidZnodeValue(path, "the id of a token", repr(token_id))
    return token_id
