"""Authentications, right and wrong: what is sent to a listener with SASL, step by step.

`play` returns a line for each response and for the end. The users are alice (alice-pw) and bob
(bob,=pw) of PLAIN, carol (carol-pw) of both mechanisms of SCRAM with 4096 iterations, and `od,d=1`
(x) of SCRAM-SHA-256. The listener `reauth` has `connections.max.reauth.ms=3000`, and `onlyplain` no
mechanism but PLAIN.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from tests.compat.sasl_conversation import (
    NONCE,
    Conversation,
    Step,
    Wire,
    client_first,
    first_bare,
    frame,
    handshake,
    list_groups,
    proof,
    raw,
    raw_bytes,
    request,
    token,
    versions,
    wait,
)


class Handshake(NamedTuple):
    """One conversation; `listener` says where: `sasl`, `reauth`, `onlyplain` or `plaintext`."""

    name: str
    listener: str
    steps: Sequence[Step]


def play(case: Handshake, wire: Wire) -> list[str]:
    """Return what a broker does at a handshake, line by line."""
    conversation = Conversation(wire)
    try:
        for step in case.steps:
            if not conversation.is_closed:
                step(conversation)
        if not conversation.is_closed:
            conversation.receive("raw")
        return conversation.lines
    finally:
        wire.close()


ALICE = b"\x00alice\x00alice-pw"
_SHA = "SCRAM-SHA-256"
_CAROL = first_bare(b"carol")


def _plain_cases() -> list[Handshake]:
    tokens = {
        "right": ALICE,
        "right with its own authorization id": b"alice\x00alice\x00alice-pw",
        "odd password": b"\x00bob\x00bob,=pw",
        "other authorization id": b"bob\x00alice\x00alice-pw",
        "other authorization id and wrong password": b"bob\x00alice\x00no",
        "wrong password": b"\x00alice\x00wrong",
        "unknown user": b"\x00nobody\x00wrong",
        "no user": b"\x00\x00wrong",
        "no password": b"\x00alice\x00",
        "empty": b"",
        "one token": b"alice",
        "two tokens": b"alice\x00pw",
        "four tokens": b"\x00alice\x00alice-pw\x00",
        "five tokens": b"\x00alice\x00alice-pw\x00x\x00y",
        "no UTF-8": b"\x00al\xffice\x00alice-pw",
    }
    cases = [
        Handshake(
            f"PLAIN: {name}, version {version}",
            "sasl",
            [versions(), handshake("PLAIN"), token(sent, version), list_groups],
        )
        for name, sent in tokens.items()
        for version in (0, 2)
    ]
    cases += [
        Handshake(f"PLAIN raw: {name}", "sasl", [handshake("PLAIN", 0), frame(sent), list_groups])
        for name, sent in tokens.items()
    ]
    return cases


def _scram_cases() -> list[Handshake]:
    both = {"sha256": _SHA, "sha512": "SCRAM-SHA-512"}
    cases = []
    for hash_name, mechanism in both.items():
        for password in ("carol-pw", "wrong"):
            first, second = client_first(b"carol"), proof(password, hash_name, first=_CAROL)
            bare = proof(password, hash_name, first=_CAROL, raw=True)
            name = f"{mechanism}: {password}"
            steps = [versions(), handshake(mechanism), token(first), second, list_groups]
            cases.append(Handshake(name, "sasl", steps))
            steps = [handshake(mechanism, 0), frame(first), bare, list_groups]
            cases.append(Handshake(f"{name}, raw", "sasl", steps))
    firsts = {
        "unknown user": client_first(b"nobody"),
        "a user without this mechanism": client_first(b"od=2Cd=3D1"),
        "authorization id of the user": client_first(b"carol", gs2=b"n,a=carol,"),
        "another authorization id": client_first(b"carol", gs2=b"n,a=dave,"),
        "channel binding wanted": client_first(b"carol", gs2=b"y,,"),
        "channel binding p": client_first(b"carol", gs2=b"p=tls-unique,,"),
        "reserved extension": b"n,,m=x," + _CAROL,
        "extension": client_first(b"carol", b",ext=val"),
        "odd extension": client_first(b"carol", b",e2=val"),
        "empty extension": client_first(b"carol", b",ext="),
        "token": client_first(b"carol", b",tokenauth=true"),
        "no nonce": b"n,,n=carol,r=",
        "nonce with a blank": b"n,,n=carol,r=a b",
        "no name": client_first(b""),
        "a comma in the name": client_first(b"ca,rol"),
        "an equals in the name": client_first(b"ca=rol"),
        "not ASCII": client_first("cärol".encode()),
        "no UTF-8": client_first(b"ca\xffrol"),
        "empty": b"",
        "rubbish": b"\x00\x01\x02",
        "a line feed in the name": client_first(b"ca\nrol"),
    }
    for name, first in firsts.items():
        # The odd user has one mechanism alone.
        mechanism = "SCRAM-SHA-512" if name.startswith("a user without") else _SHA
        steps = [versions(), handshake(mechanism), token(first)]
        cases.append(Handshake(f"SCRAM first: {name}", "sasl", steps))
    odd = first_bare(b"od=2Cd=3D1")
    own = client_first(b"carol", gs2=b"n,a=carol,")
    begin = [versions(), handshake(_SHA)]
    finals: dict[str, Sequence[Step]] = {
        "odd name": [token(client_first(b"od=2Cd=3D1")), proof("x", first=odd)],
        "own authorization id": [
            token(own),
            proof("carol-pw", first=_CAROL, channel=b"bixhPWNhcm9sLA=="),
        ],
        "another nonce": [
            token(client_first(b"carol")),
            proof("carol-pw", first=_CAROL, nonce=NONCE),
        ],
        "another channel": [
            token(client_first(b"carol")),
            proof("carol-pw", first=_CAROL, channel=b"eSws"),
        ],
        "empty channel": [
            token(client_first(b"carol")),
            proof("carol-pw", first=_CAROL, channel=b""),
        ],
        "channel no base64": [
            token(client_first(b"carol")),
            proof("carol-pw", first=_CAROL, channel=b"b!ws"),
        ],
        "extension behind": [
            token(client_first(b"carol")),
            proof("carol-pw", first=_CAROL, more=b",ext=x"),
        ],
        "extension in first": [
            token(client_first(b"carol", b",ext=val")),
            proof("carol-pw", first=first_bare(b"carol", b",ext=val")),
        ],
        "reserved in first": [token(b"n,,m=x," + _CAROL), proof("carol-pw", first=_CAROL)],
        "short proof": [token(client_first(b"carol")), proof("carol-pw", first=_CAROL, wrong=True)],
        "no proof": [token(client_first(b"carol")), token(b"c=biws,r=x")],
        "empty proof": [token(client_first(b"carol")), token(b"c=biws,r=x,p=")],
        "rubbish": [token(client_first(b"carol")), token(b"\x00")],
        "once more": [token(client_first(b"carol")), proof("carol-pw", first=_CAROL), token(b"x")],
    }
    return cases + [
        Handshake(f"SCRAM: {name}", "sasl", [*begin, *steps]) for name, steps in finals.items()
    ]


def _state_cases() -> list[Handshake]:
    plain = [versions(), handshake("PLAIN")]
    done = [*plain, token(ALICE)]
    cases = {
        "unknown mechanism": [versions(), handshake("FOO")],
        "unknown mechanism, version 0": [handshake("FOO", 0)],
        "GSSAPI": [versions(), handshake("GSSAPI")],
        "lower case": [versions(), handshake("plain")],
        "empty mechanism": [versions(), handshake("")],
        "versions twice": [versions(), versions()],
        "versions 0": [versions(0), handshake("PLAIN"), token(ALICE)],
        "versions 4": [versions(4), handshake("PLAIN"), token(ALICE)],
        "versions 9": [raw("ApiVersions", 9, b"", "ApiVersions"), versions(), versions()],
        "versions 9 twice": [
            raw("ApiVersions", 9, b"", "ApiVersions"),
            raw("ApiVersions", 9, b"", "ApiVersions"),
            handshake("PLAIN"),
        ],
        "versions without a name": [
            request("ApiVersions", 3, client_software_name="", client_software_version=""),
            versions(),
            handshake("PLAIN"),
        ],
        "versions with a short body": [raw("ApiVersions", 3, b"\x05")],
        "versions behind the handshake": [versions(), handshake("PLAIN"), versions()],
        "handshake twice": [*plain, handshake("PLAIN")],
        "handshake 2": [versions(), raw("SaslHandshake", 2, b"\x00\x05PLAIN")],
        "handshake with a short body": [versions(), raw("SaslHandshake", 1, b"\x00\x09PL")],
        "handshake with more behind": [
            versions(),
            raw("SaslHandshake", 1, b"\x00\x05PLAIN\x00", "SaslHandshake"),
            token(ALICE),
        ],
        "no handshake": [versions(), token(ALICE)],
        "token first": [token(ALICE)],
        "metadata first": [request("Metadata", 1, topics=[])],
        "metadata with a wrong body": [raw("Metadata", 1, b"\xff\xff\xff\xff\xff")],
        "metadata behind versions": [versions(), request("Metadata", 1, topics=[])],
        "produce first": [raw("Produce", 9, b"\x00" * 20)],
        "metadata for a token": [*plain, request("Metadata", 1, topics=[])],
        "metadata of a wrong body for a token": [*plain, raw("Metadata", 1, b"\x7f\xff\xff\xff")],
        "metadata 99 for a token": [*plain, raw("Metadata", 99, b"")],
        "produce of acks 0 for a token": [
            *plain,
            raw("Produce", 3, b"\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"),
        ],
        "raw token behind handshake 1": [*plain, frame(ALICE)],
        "rubbish behind handshake 1": [*plain, frame(b"\x00\x12")],
        "request behind handshake 0": [versions(), handshake("PLAIN", 0), token(ALICE)],
        "token 3": [*plain, raw("SaslAuthenticate", 3, b"\x01\x00")],
        "token with a short body": [*plain, raw("SaslAuthenticate", 2, b"\x20")],
        "token of no bytes": [*plain, raw("SaslAuthenticate", 0, b"")],
        "unknown key": [raw(1000, 0, b"")],
        "unknown key behind versions": [versions(), raw(1000, 0, b"")],
        "unknown key for a token": [*plain, raw(1000, 0, b"")],
        "a key of KRaft": [raw("Vote", 0, b"")],
        "negative key": [frame(b"\xff\xff\x00\x00\x00\x00\x00\x01\x00\x00")],
        "metadata 99 first": [raw("Metadata", 99, b"")],
        "metadata 99 behind versions": [versions(), raw("Metadata", 99, b"")],
        "rubbish first": [frame(b"rubbish that is no request")],
        "GSSAPI first": [frame(b"\x60\x82\x01\x02")],
        "short frame": [frame(b"\x00")],
        "empty frame": [frame(b"")],
        "negative length": [raw_bytes(b"\xff\xff\xff\xff")],
        "length of 524288": [frame(b"\x00" * 524_288)],
        "length of 524289": [raw_bytes(struct.pack(">i", 524_289))],
        "token of 600000": [*plain, token(b"\x00" * 600_000)],
        "token of 500000": [*plain, token(b"\x00" * 500_000)],
        "handshake behind the end": [*done, handshake("PLAIN"), list_groups],
        "token behind the end": [*done, token(ALICE), list_groups],
        "versions behind the end": [*done, versions(), list_groups],
        "all at once": [
            lambda one: (
                one.request("SaslHandshake", 1, mechanism="PLAIN"),
                one.request("SaslAuthenticate", 2, auth_bytes=ALICE),
                one.request("ListGroups", 0),
                one.receive("SaslHandshake"),
                one.receive("SaslAuthenticate 2"),
                one.receive("ListGroups"),
            )
        ],
        "wrong, and more behind it": [
            lambda one: (
                one.request("SaslHandshake", 1, mechanism="PLAIN"),
                one.request("SaslAuthenticate", 2, auth_bytes=b"\x00alice\x00no"),
                one.request("SaslAuthenticate", 2, auth_bytes=ALICE),
                one.receive("SaslHandshake"),
                one.receive("SaslAuthenticate 2"),
            )
        ],
    }
    found = [Handshake(f"state: {name}", "sasl", steps) for name, steps in cases.items()]
    found.append(
        Handshake("another list of mechanisms", "onlyplain", [versions(), handshake(_SHA)])
    )
    for version in (0, 1):
        steps = [versions(), handshake("PLAIN", version), list_groups]
        found.append(Handshake(f"plaintext: handshake {version}", "plaintext", steps))
    for version in (0, 1, 2):
        steps = [versions(), token(ALICE, version), list_groups]
        found.append(Handshake(f"plaintext: token {version}", "plaintext", steps))
    return found


def _reauthentication_cases() -> list[Handshake]:
    plain = [versions(), handshake("PLAIN")]
    done = [*plain, token(ALICE)]
    again = [handshake("PLAIN"), token(ALICE)]
    cases = {
        "lifetime, version 0": [*plain, token(ALICE, 0), list_groups],
        "lifetime, version 1": [*plain, token(ALICE, 1), list_groups],
        "lifetime of SCRAM": [
            versions(),
            handshake(_SHA),
            token(client_first(b"carol")),
            proof("carol-pw", first=_CAROL),
        ],
        "again": [*done, *again, list_groups],
        "again with a request between": [*done, handshake("PLAIN"), list_groups],
        "again with versions": [*done, handshake("PLAIN"), versions()],
        "versions before again": [*done, versions(), *again, list_groups],
        "twice within a second": [*done, *again, handshake("PLAIN"), list_groups],
        "twice": [*done, *again, wait(1.1), *again, list_groups],
        "another user": [*done, handshake("PLAIN"), token(b"\x00bob\x00bob,=pw"), list_groups],
        "wrong password": [*done, handshake("PLAIN"), token(b"\x00alice\x00no"), list_groups],
        "another mechanism": [*done, handshake(_SHA), token(client_first(b"carol")), list_groups],
        "unknown mechanism": [*done, handshake("FOO"), list_groups],
        "handshake 0": [*done, handshake("PLAIN", 0), frame(ALICE), list_groups],
        "too late": [*done, wait(3.3), list_groups],
        "in time": [*done, wait(1.5), *again, wait(1.8), list_groups],
        "late, but again": [*done, wait(3.3), *again, list_groups],
        "late, version 0": [*plain, token(ALICE, 0), wait(3.3), list_groups],
        "late, raw": [handshake("PLAIN", 0), frame(ALICE), wait(3.3), list_groups],
        "late token": [*done, wait(3.3), token(ALICE)],
        "SCRAM again": [
            versions(),
            handshake(_SHA),
            token(client_first(b"carol")),
            proof("carol-pw", first=_CAROL),
            handshake(_SHA),
            token(client_first(b"carol")),
            proof("carol-pw", first=_CAROL),
            list_groups,
        ],
    }
    return [Handshake(f"again: {name}", "reauth", steps) for name, steps in cases.items()]


def handshakes() -> list[Handshake]:
    """Return all of them."""
    return [*_plain_cases(), *_scram_cases(), *_state_cases(), *_reauthentication_cases()]
