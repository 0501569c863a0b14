"""Java's own key stores; `tls/stores` has some that keytool made."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path

import pytest

from engine.host.jks import MalformedJks, read_jks

_STORES = Path(__file__).parent / "tls" / "stores"
_OTHER_KIND = b"\xfe\xed\xfe\xed\0\0\0\x02\0\0\0\x01\0\0\0\x03\0\0" + bytes(8)
_KEYS = (_STORES / "broker.jks").read_bytes()


def test_a_store_has_a_key_with_its_chain() -> None:
    store = read_jks(_KEYS, "store-pw", None)
    assert store.key is not None
    assert (2, 0) == (len(store.chain), len(store.trusted))
    assert store == read_jks(_KEYS, "store-pw", "store-pw")


def test_a_store_of_certificates_is_read_without_its_password_too() -> None:
    trusted = (_STORES / "trust.jks").read_bytes()
    assert read_jks(trusted, None, None) == read_jks(trusted, "trust-pw", None)
    assert 1 == len(read_jks(trusted, None, None).trusted)


@pytest.mark.parametrize(
    ("content", "password", "key_password", "reason"),
    [
        (_KEYS, "wrong", None, "it was changed, or the password is wrong"),
        (_KEYS[:100] + b"?" + _KEYS[101:], "store-pw", None, "it was changed"),
        (_KEYS, "store-pw", "wrong", "the password of its key is wrong"),
        (_KEYS[:-500], None, "store-pw", "truncated or damaged"),
        (b"\xfe\xed\xfe\xed\0\0\0\x03", None, None, "no JKS store"),
        (
            b"\xfe\xed\xfe\xed\0\0\0\x02\0\0\0\x01\0\0\0\x03\0\0" + bytes(8),
            None,
            None,
            "another kind",
        ),
    ],
)
def test_what_is_wrong_with_a_store_is_said(
    content: bytes, password: str | None, key_password: str | None, reason: str
) -> None:
    with pytest.raises(MalformedJks, match=reason):
        read_jks(content, password, key_password)


def _store_of_hidden(content: bytes) -> bytes:
    """Return a store of one key without certificates, encrypted to `content`."""
    octets = bytes([0x04, len(content)]) + content
    encrypted = bytes([0x30, 2 + len(octets), 0x30, 0]) + octets
    entry = struct.pack(">II", 1, 1) + bytes(2 + 8)
    return (
        b"\xfe\xed\xfe\xed\0\0\0\x02"
        + entry
        + struct.pack(">I", len(encrypted))
        + encrypted
        + bytes(4)
    )


def test_a_hidden_key_has_room_for_its_salt_and_its_digest() -> None:
    """The digest may not overlap the salt, not even where it would be that of an empty key."""
    digest = hashlib.sha1("pw".encode("utf-16-be"), usedforsecurity=False).digest()
    store = read_jks(_store_of_hidden(bytes(20) + digest), None, "pw")
    assert (b"", [], []) == store
    with pytest.raises(MalformedJks, match="truncated or damaged"):
        read_jks(_store_of_hidden(bytes(19) + digest), None, "pw")
