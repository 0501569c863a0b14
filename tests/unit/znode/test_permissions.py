"""What ACLs let clients do, and which ACLs there are: ZooKeeper's rules."""

from __future__ import annotations

import pytest

from engine.znode.errors import InvalidAcl
from engine.znode.model import OPEN_ACL, NodeAclEntry
from engine.znode.permissions import (
    Identities,
    Permission,
    acl_to_store,
    digest_identity,
    masked_acl,
    permits,
)

_IP = ("ip", "10.1.2.3")
_SASL = ("sasl", "kafka")
#: What ZooKeeper's DigestAuthenticationProvider makes of `super:admin`.
_DIGEST = ("digest", "super:xQJmxLMiHGwaqBvst5y6rkB6HQs=")


def test_the_digest_of_a_password_is_zookeepers() -> None:
    assert _DIGEST == digest_identity(b"super:admin")


@pytest.mark.parametrize(
    ("entry", "is_permitted"),
    [
        (NodeAclEntry(1, "world", "anyone"), True),
        (NodeAclEntry(2, "world", "anyone"), False),
        (NodeAclEntry(31, *_SASL), True),
        (NodeAclEntry(31, "sasl", "other"), False),
        (NodeAclEntry(31, "digest", "kafka"), False),
        (NodeAclEntry(1, "ip", "10.1.2.3"), True),
        (NodeAclEntry(1, "ip", "10.1.0.0/16"), True),
        (NodeAclEntry(1, "ip", "10.2.0.0/16"), False),
    ],
)
def test_an_entry_is_of_one_identity(entry: NodeAclEntry, is_permitted: bool) -> None:
    assert is_permitted is permits((entry,), Permission.READ, (_IP, _SASL))


def test_who_has_no_identities_may_do_everything() -> None:
    assert permits((NodeAclEntry(31, *_SASL),), Permission.ADMIN, None)
    assert permits(OPEN_ACL, Permission.ADMIN, ())
    assert not permits((NodeAclEntry(31, *_SASL),), Permission.READ, ())


def test_auth_is_what_the_client_has_shown_to_be() -> None:
    acl = (NodeAclEntry(31, "auth", ""), NodeAclEntry(1, "world", "anyone"))
    assert acl_to_store("/a", acl, (_IP, _SASL, _DIGEST), has_sasl=True) == (
        NodeAclEntry(31, *_SASL),
        NodeAclEntry(31, *_DIGEST),
        NodeAclEntry(1, "world", "anyone"),
    )


@pytest.mark.parametrize(
    ("acl", "identities", "has_sasl"),
    [
        ((), (_IP, _SASL), True),
        ((NodeAclEntry(31, "auth", ""),), (_IP,), True),
        ((NodeAclEntry(31, *_SASL),), (_IP,), False),
        ((NodeAclEntry(31, "world", "me"),), (_IP,), True),
        ((NodeAclEntry(31, "digest", "kafka"),), (_IP,), True),
        ((NodeAclEntry(31, "ip", "10.1.2.3.4"),), (_IP,), True),
        ((NodeAclEntry(31, "x509", "CN=a"),), (_IP,), True),
    ],
)
def test_what_nobody_can_be_is_no_acl(
    acl: tuple[NodeAclEntry, ...], identities: Identities, has_sasl: bool
) -> None:
    with pytest.raises(InvalidAcl):
        acl_to_store("/a", acl, identities, has_sasl=has_sasl)


def test_an_entry_counts_once() -> None:
    entry = NodeAclEntry(31, *_SASL)
    assert (entry,) == acl_to_store("/a", (entry, entry), (_IP,), has_sasl=True)


def test_hashes_of_passwords_are_shown_to_administrators_alone() -> None:
    acl = (NodeAclEntry(31, *_DIGEST), NodeAclEntry(1, "world", "anyone"))
    assert acl == masked_acl(acl, (_IP, _DIGEST))
    assert masked_acl(acl, (_IP,)) == (NodeAclEntry(31, "digest", "super:x"), acl[1])


@pytest.mark.parametrize(
    ("scheme", "name", "is_valid"),
    [
        ("digest", ":", False),
        ("digest", "bob:", False),
        ("digest", ":x", True),
        ("digest", "a:b:", True),
        ("digest", "a:b:c", False),
        ("ip", "127.000.000.001", True),
        ("ip", "127.0.0.1/+8", True),
        ("ip", "1.2.3.4/0", True),
        ("ip", "1.2.3.4/33", False),
        ("ip", "1.2.3.4/-1", False),
        ("ip", "127.0.0.1/255.0.0.0", False),
        ("ip", "127.0.0.1/8/8", False),
        ("ip", " 127.0.0.1", False),
        ("ip", "127.1", False),
        ("ip", "::1", False),
        ("ip", "::1/64", False),
        ("", "", False),
    ],
)
def test_an_acl_is_valid_where_a_zookeeper_takes_it(scheme: str, name: str, is_valid: bool) -> None:
    """As ZooKeeper 3.8.4 responded to each."""
    entry = NodeAclEntry(31, scheme, name)
    if is_valid:
        assert (entry,) == acl_to_store("/a", [entry], (), has_sasl=False)
    else:
        with pytest.raises(InvalidAcl):
            acl_to_store("/a", [entry], (), has_sasl=False)


def test_an_address_lies_in_a_network_by_its_first_bits() -> None:
    def may(network: str, address: str) -> bool:
        acl = (NodeAclEntry(1, "ip", network),)
        return permits(acl, Permission.READ, (("ip", address),))

    assert may("10.1.0.0/16", "10.1.2.3")
    assert not may("10.1.0.0/16", "10.2.2.3")
    assert may("1.2.3.4/0", "10.2.2.3")
    assert may("010.1.2.3", "10.1.2.3")
    assert not may("0.0.0.0/0", "::1")
