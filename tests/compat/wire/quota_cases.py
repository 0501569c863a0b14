"""Quotas of clients, and credentials of users: altered and described."""

from __future__ import annotations

import time
from typing import Any

from tests.compat.wire.pair import Body, Pair, versions

_Entity = dict[str, str | None]
_ODD_ENTITIES: tuple[_Entity, ...] = (
    {},
    {"user": ""},
    {"client-id": ""},
    {"ip": ""},
    {"user": "u", "ip": "127.0.0.1"},
    {"client-id": "c", "ip": None},
    {"ip": "no such host.invalid"},
    {"ip": "10.1.2.3"},
    {"ip": "localhost"},
    {"ip": None},
    {"group": "g"},
    {"user": "u", "group": "g"},
    {"": "g"},
    {"user": "a/b %*ä"},
    {"user": "<default>"},
    {"user": None},
    {"client-id": None},
    {"client-id": "<default>"},
    {"user": "u"},
    {"user": "u", "client-id": "c"},
    {"user": "u", "client-id": None},
    {"user": None, "client-id": "c"},
    {"user": None, "client-id": None},
    {"client-id": "c"},
)
_ODD_VALUES: tuple[tuple[str, float], ...] = (
    ("producer_byte_rate", 1000.0),
    ("producer_byte_rate", 1000.5),
    ("producer_byte_rate", 999.9999999),
    ("producer_byte_rate", 0.0),
    ("producer_byte_rate", -1.0),
    ("producer_byte_rate", 1e18),
    ("producer_byte_rate", 1e30),
    ("producer_byte_rate", float("nan")),
    ("producer_byte_rate", float("inf")),
    ("consumer_byte_rate", 2000.0),
    ("request_percentage", 50.0),
    ("request_percentage", 0.1),
    ("request_percentage", 1e7),
    ("request_percentage", 1e-5),
    ("request_percentage", -3.0),
    ("request_percentage", float("inf")),
    ("controller_mutation_rate", 12.5),
    ("controller_mutation_rate", 12345678.9),
    ("connection_creation_rate", 5.0),
    ("connection_creation_rate", -5.0),
    ("connection_creation_rate", 1e10),
    ("SCRAM-SHA-256", 1.0),
    ("nonsense", 1.0),
    ("", 1.0),
)


def _entry(entity: _Entity, *ops: tuple[str, float | None]) -> Body:
    return {
        "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity.items()],
        "ops": [
            {"key": key, "value": 0.0 if value is None else value, "remove": value is None}
            for key, value in ops
        ],
    }


def _alter(pair: Pair, label: str, version: int, *entries: Body, dry: bool = False) -> None:
    body = {"entries": list(entries), "validate_only": dry}
    pair.ask(f"{label} dry {dry}", "AlterClientQuotas", version, body)


def _describe(pair: Pair, label: str, version: int, *wanted: tuple[str, int, str | None]) -> None:
    components = [
        {"entity_type": kind, "match_type": match_type, "match": match}
        for kind, match_type, match in wanted
    ]
    for strict in (True, False):
        body: Any = {"components": components, "strict": strict}
        pair.ask(f"{label} {wanted} {strict}", "DescribeClientQuotas", version, body)


_COMPONENTS: tuple[tuple[tuple[str, int, str | None], ...], ...] = (
    (),
    (("user", 2, None),),
    (("user", 1, None),),
    (("user", 0, "u"),),
    (("user", 0, "a/b %*ä"),),
    (("user", 0, "nobody"),),
    (("user", 0, ""),),
    (("user", 1, "u"),),
    (("user", 2, "u"),),
    (("client-id", 2, None),),
    (("client-id", 1, None),),
    (("client-id", 0, "c"),),
    (("user", 0, "u"), ("client-id", 0, "c")),
    (("user", 0, "u"), ("client-id", 1, None)),
    (("user", 0, "u"), ("client-id", 2, None)),
    (("user", 1, None), ("client-id", 1, None)),
    (("user", 2, None), ("client-id", 2, None)),
    (("user", 2, None), ("client-id", 0, "c")),
    (("ip", 2, None),),
    (("ip", 1, None),),
    (("ip", 0, "10.1.2.3"),),
    (("ip", 0, "no such host.invalid"),),
    (("ip", 2, None), ("user", 2, None)),
    (("user", 2, None), ("user", 2, None)),
    (("ip", 2, None), ("ip", 2, None)),
    (("client-id", 2, None), ("client-id", 1, None)),
    (("", 2, None),),
    (("group", 2, None),),
    (("user", 3, None),),
    (("user", 0, None),),
)


def quotas(pair: Pair) -> None:
    """Alter and describe quotas."""
    for version in versions("AlterClientQuotas"):
        for entity in _ODD_ENTITIES:
            key = "connection_creation_rate" if "ip" in entity else "producer_byte_rate"
            for dry in (True, False):
                entry = _entry(entity, (key, 1e9))
                _alter(pair, f"entity {entity}", version, entry, dry=dry)
            _alter(pair, f"no ops {entity}", version, _entry(entity))
        for key, value in _ODD_VALUES:
            for entity in ({"user": "values"}, {"client-id": "values"}, {"ip": "10.0.0.9"}):
                entry = _entry(dict(entity), (key, value))
                for dry in (True, False):
                    _alter(pair, f"{key} {value} of {entity}", version, entry, dry=dry)
                _describe(pair, f"after {key} {value}", version, ("user", 0, "values"))
                _describe(pair, f"after {key} {value}", version, ("ip", 0, "10.0.0.9"))
        user = {"user": "several"}
        ops = ("producer_byte_rate", 5e8), ("consumer_byte_rate", 6e8), ("nonsense", None)
        _alter(pair, "several", version, _entry(dict(user), *ops))
        _alter(pair, "twice", version, _entry(dict(user), ops[0], ("producer_byte_rate", 7e8)))
        _alter(pair, "entry twice", version, *[_entry(dict(user), op) for op in ops[:2]])
        _alter(pair, "half", version, _entry(dict(user), ops[1], ("nonsense", 1.0)))
        same = _entry({"user": "x"}, ops[0])
        same["entity"] *= 2
        _alter(pair, "type twice", version, same)
        for components in _COMPONENTS:
            _describe(pair, "filter", version, *components)
        for entity in _ODD_ENTITIES:
            key = "connection_creation_rate" if "ip" in entity else "producer_byte_rate"
            _alter(pair, f"remove {entity}", version, _entry(entity, (key, None)))
        _describe(pair, "removed", version)
        for entity in ({"user": "values"}, {"client-id": "values"}, {"ip": "10.0.0.9"}, user):
            keys = dict.fromkeys(key for key, _ in _ODD_VALUES if key)
            _alter(pair, "clean", version, _entry(dict(entity), *((key, None) for key in keys)))
        _describe(pair, "clean", version)


_SALT, _PASSWORD = b"salt" * 5, b"p" * 32


def _upsertion(name: str, mechanism: int = 1, iterations: int = 4096) -> Body:
    return {
        "name": name,
        "mechanism": mechanism,
        "iterations": iterations,
        "salt": _SALT,
        "salted_password": _PASSWORD,
    }


def _deletion(name: str, mechanism: int = 1) -> Body:
    return {"name": name, "mechanism": mechanism}


_CREDENTIALS: tuple[tuple[list[Body], list[Body]], ...] = (
    ([], []),
    ([_upsertion("ann")], []),
    ([_upsertion("ann", 2)], []),
    ([_upsertion("bob"), _upsertion("bob", 2)], []),
    ([_upsertion("ann"), _upsertion("ann")], []),
    ([_upsertion("ann")], [_deletion("ann")]),
    ([_upsertion("ann")], [_deletion("ann", 2)]),
    ([_upsertion("")], []),
    ([_upsertion("c", 0)], []),
    ([_upsertion("c", 3)], []),
    ([_upsertion("c", -1)], []),
    ([_upsertion("c", 1, 4095)], []),
    ([_upsertion("c", 1, 16384)], []),
    ([_upsertion("c", 1, 16385)], []),
    ([_upsertion("c", 2, 0)], []),
    ([], [_deletion("nobody")]),
    ([], [_deletion("")]),
    ([], [_deletion("ann", 0)]),
    ([_upsertion("d")], [_deletion("nobody")]),
    ([_upsertion("d")], [_deletion("d", 2)]),
    ([_upsertion("e", 1, 1)], [_deletion("e", 9)]),
    ([_upsertion("a/b %*ä=,")], []),
    ([_upsertion("f") | {"salt": b"", "salted_password": b""}], []),
    ([_upsertion("f", 2) | {"salted_password": b""}], []),
)
_USERS: tuple[list[str] | None, ...] = (
    None,
    [],
    ["ann"],
    ["nobody"],
    ["ann", "bob", "nobody"],
    ["ann", "ann", "bob"],
    [""],
    ["", ""],
    ["a/b %*ä=,"],
)


def credentials(pair: Pair) -> None:
    """Make, describe and remove credentials of SCRAM."""
    users_with_quotas = _entry({"user": "quota"}, ("producer_byte_rate", 1e9))
    _alter(pair, "beside", 1, users_with_quotas)
    for upsertions, deletions in _CREDENTIALS:
        names = [(one["name"], one["mechanism"]) for one in (*upsertions, *deletions)]
        body = {"upsertions": upsertions, "deletions": deletions}
        pair.ask(f"alter {names}", "AlterUserScramCredentials", 0, body)
        pair.ask(f"after {names}", "DescribeUserScramCredentials", 0, {"users": None})
    for users in _USERS:
        named = None if users is None else [{"name": user} for user in users]
        pair.ask(f"describe {users}", "DescribeUserScramCredentials", 0, {"users": named})
    left = [_deletion(user, n) for user in ("ann", "bob") for n in (1, 2)]
    pair.ask("remove", "AlterUserScramCredentials", 0, {"upsertions": [], "deletions": left})
    time.sleep(0.1)
    pair.ask("removed", "DescribeUserScramCredentials", 0, {"users": None})


CASES = {"quotas.clients": quotas, "quotas.credentials": credentials}
