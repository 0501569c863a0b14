"""Quotas of clients and credentials of users on a whole broker: asked for, and in its znodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from engine.host.coroutine import drive
from engine.wire.structs import message_class
from engine.znode.embedded import EmbeddedZnodeClient
from engine.znode.errors import NoNode
from tests.unit.broker.memory_broker import MemoryBroker, MemoryClient


@pytest.fixture
def stage() -> Iterator[MemoryBroker]:
    stage = MemoryBroker().start()
    yield stage
    stage.stop()
    assert not stage.faults


def alter(
    client: MemoryClient, entity: dict[str, str | None], dry: bool = False, **ops: Any
) -> Any:
    of = message_class("AlterClientQuotasRequest")
    entry = of.EntryData(
        entity=[of.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[
            of.OpData(key=key, value=value or 0.0, remove=value is None)
            for key, value in ops.items()
        ],
    )
    answer = client.ask("AlterClientQuotas", 1, entries=[entry], validate_only=dry)
    (result,) = answer.entries
    return result.error_code, result.error_message


def describe(
    client: MemoryClient, *parts: tuple[str, int, str | None], strict: bool = False
) -> Any:
    of = message_class("DescribeClientQuotasRequest")
    components = [
        of.ComponentData(entity_type=kind, match_type=match_type, match=name)
        for kind, match_type, name in parts
    ]
    answer = client.ask("DescribeClientQuotas", 1, components=components, strict=strict)
    if answer.error_code:
        assert answer.entries is None
        return answer.error_code, answer.error_message
    return [
        (
            {part.entity_type: part.entity_name for part in entry.entity},
            {value.key: value.value for value in entry.values},
        )
        for entry in answer.entries
    ]


class Nodes:
    """What lies in the store."""

    def __init__(self, stage: MemoryBroker) -> None:
        self._client = EmbeddedZnodeClient(stage.store, 1 << 30)
        drive(self._client.connect()).result()

    def get(self, path: str) -> bytes | None:
        try:
            return drive(self._client.get(path)).result()[0]
        except NoNode:
            return None

    def children(self, path: str) -> list[str]:
        return drive(self._client.children(path)).result()


def test_quotas_lie_in_the_settings_of_their_entity(stage: MemoryBroker) -> None:
    client, nodes = stage.connect(), Nodes(stage)
    assert (0, None) == alter(client, {"user": "u", "client-id": None}, producer_byte_rate=1e9)
    assert (0, None) == alter(client, {"ip": None}, connection_creation_rate=9.0)
    assert b'{"version":1,"config":{"producer_byte_rate":"1000000000"}}' == nodes.get(
        "/config/users/u/clients/<default>"
    )
    (first, second) = nodes.children("/config/changes")
    assert b'{"version":2,"entity_path":"users/u/clients/<default>"}' == nodes.get(
        f"/config/changes/{first}"
    )
    assert b'{"version":2,"entity_path":"ips/<default>"}' == nodes.get(f"/config/changes/{second}")
    assert [
        ({"user": "u", "client-id": None}, {"producer_byte_rate": 1e9}),
        ({"ip": None}, {"connection_creation_rate": 9.0}),
    ] == describe(client)


def test_a_trial_changes_nothing(stage: MemoryBroker) -> None:
    client = stage.connect()
    assert (0, None) == alter(client, {"user": "u"}, dry=True, producer_byte_rate=1e9)
    assert [] == describe(client)


def test_nodes_go_with_the_last_quota(stage: MemoryBroker) -> None:
    client, nodes = stage.connect(), Nodes(stage)
    alter(client, {"user": "u"}, producer_byte_rate=1e9)
    for name in ("c", "d"):
        alter(client, {"user": "u", "client-id": name}, producer_byte_rate=1e9)
    alter(client, {"user": "u"}, producer_byte_rate=None)
    assert b'{"version":1,"config":{}}' == nodes.get("/config/users/u")
    alter(client, {"user": "u", "client-id": "c"}, producer_byte_rate=None)
    assert ["d"] == nodes.children("/config/users/u/clients")
    alter(client, {"user": "u", "client-id": "d"}, producer_byte_rate=None)
    assert [] == nodes.children("/config/users")
    assert (0, None) == alter(client, {"user": "u"}, producer_byte_rate=None)
    assert [] == nodes.children("/config/users")


def test_a_user_with_settings_stays_when_its_last_client_goes(stage: MemoryBroker) -> None:
    client, nodes = stage.connect(), Nodes(stage)
    alter(client, {"user": "u"}, producer_byte_rate=1e9)
    alter(client, {"user": "u", "client-id": "c"}, producer_byte_rate=1e9)
    alter(client, {"user": "u", "client-id": "c"}, producer_byte_rate=None)
    assert [] == nodes.children("/config/users/u")
    assert [({"user": "u"}, {"producer_byte_rate": 1e9})] == describe(client)


@pytest.mark.parametrize("strict", [True, False])
def test_names_that_are_not_there_have_no_quotas(stage: MemoryBroker, strict: bool) -> None:
    client = stage.connect()
    alter(client, {"user": "u"}, producer_byte_rate=1e9)
    assert [] == describe(client, ("user", 0, "nobody"), strict=strict)
    assert [({"user": "u"}, {"producer_byte_rate": 1e9})] == describe(
        client, ("user", 0, "u"), strict=strict
    )


@pytest.mark.parametrize(
    ("parts", "strict", "error"),
    [
        ([("user", 3, None)], False, (-1, None)),
        ([("user", 0, None)], False, (-1, None)),
        ([("user", 0, "")], True, (-1, None)),
        ([("group", 2, None)], False, (35, "Custom entity type 'group' not supported")),
    ],
)
def test_a_filter_that_cannot_be_is_an_error(
    stage: MemoryBroker, parts: list[Any], strict: bool, error: tuple[int, str | None]
) -> None:
    assert error == describe(stage.connect(), *parts, strict=strict)


def test_an_alteration_that_fails_leaves_the_others(stage: MemoryBroker) -> None:
    of = message_class("AlterClientQuotasRequest")

    def entry(kind: str, key: str, value: float) -> Any:
        return of.EntryData(
            entity=[of.EntityData(entity_type=kind, entity_name="x")],
            ops=[of.OpData(key=key, value=value)],
        )

    client = stage.connect()
    entries = [
        entry("user", "SCRAM-SHA-256", 1.0),
        entry("client-id", "request_percentage", 1.0),
        entry("client-id", "request_percentage", 2.0),
    ]
    answer = client.ask("AlterClientQuotas", 1, entries=entries)
    assert [(-1, None), (0, None)] == [
        (one.error_code, one.error_message) for one in answer.entries
    ]
    assert [({"client-id": "x"}, {"request_percentage": 2.0})] == describe(client)


# Credentials


def credentials(client: MemoryClient, *users: str) -> Any:
    of = message_class("DescribeUserScramCredentialsRequest")
    answer = client.ask(
        "DescribeUserScramCredentials", 0, users=[of.UserName(name=user) for user in users]
    )
    assert not answer.error_code
    return [
        (
            one.user,
            one.error_code,
            [(info.mechanism, info.iterations) for info in one.credential_infos],
        )
        for one in answer.results
    ]


def alter_credentials(client: MemoryClient, *changes: tuple[str, int, int | None]) -> Any:
    """Make credentials of a user, mechanism and iterations; None removes one."""
    of = message_class("AlterUserScramCredentialsRequest")
    answer = client.ask(
        "AlterUserScramCredentials",
        0,
        upsertions=[
            of.ScramCredentialUpsertion(
                name=user,
                mechanism=mechanism,
                iterations=iterations,
                salt=b"salt" * 5,
                salted_password=b"p" * 32 if user != "empty" else b"",
            )
            for user, mechanism, iterations in changes
            if iterations is not None
        ],
        deletions=[
            of.ScramCredentialDeletion(name=user, mechanism=mechanism)
            for user, mechanism, iterations in changes
            if iterations is None
        ],
    )
    return [(one.user, one.error_code, one.error_message) for one in answer.results]


def test_credentials_lie_beside_the_quotas_of_their_user(stage: MemoryBroker) -> None:
    client, nodes = stage.connect(), Nodes(stage)
    alter(client, {"user": "bob x"}, producer_byte_rate=1e9)
    assert [("bob x", 0, "")] == alter_credentials(client, ("bob x", 1, 4096), ("bob x", 2, 8192))
    found = nodes.get("/config/users/bob%20x")
    assert found is not None
    assert b'"SCRAM-SHA-256":"salt=c2FsdHNhbHRzYWx0c2FsdHNhbHQ=,stored_key=5fFUxV0A' in found
    assert b'"producer_byte_rate":"1000000000"' in found
    assert [("bob x", 0, [(1, 4096), (2, 8192)])] == credentials(client)
    assert [({"user": "bob x"}, {"producer_byte_rate": 1e9})] == describe(client)
    assert [("bob x", 0, "")] == alter_credentials(client, ("bob x", 1, None), ("bob x", 2, None))
    assert b'{"version":1,"config":{"producer_byte_rate":"1000000000"}}' == nodes.get(
        "/config/users/bob%20x"
    )


@pytest.mark.parametrize(
    ("changes", "results"),
    [
        ([("", 1, 4096)], [("", 93, "Username must not be empty")]),
        ([("c", 3, 4096)], [("c", 33, "Unknown SCRAM mechanism")]),
        ([("c", 0, None)], [("c", 33, "Unknown SCRAM mechanism")]),
        ([("c", 1, 4095)], [("c", 93, "Too few iterations")]),
        ([("c", 1, 16385)], [("c", 93, "Too many iterations")]),
        ([("c", 1, 1), ("c", 9, None)], [("c", 93, "Too few iterations")]),
        (
            [("c", 1, 4096), ("c", 1, None)],
            [("c", 92, "A user credential cannot be altered twice in the same request")],
        ),
        (
            [("d", 1, 4096), ("c", 1, None)],
            [
                ("c", 91, "Attempt to delete a user credential that does not exist"),
                ("d", 0, ""),
            ],
        ),
        (
            [("empty", 1, 4096)],
            [
                (
                    "empty",
                    -1,
                    "The server experienced an unexpected error when processing the request.",
                )
            ],
        ),
    ],
)
def test_credentials_that_cannot_be_are_refused(
    stage: MemoryBroker, changes: list[Any], results: list[Any]
) -> None:
    assert results == alter_credentials(stage.connect(), *changes)


def test_users_are_described_by_name(stage: MemoryBroker) -> None:
    client = stage.connect()
    alter_credentials(client, ("b", 1, 4096), ("a", 2, 4096))
    assert [("a", 0, [(2, 4096)]), ("b", 0, [(1, 4096)])] == credentials(client)
    assert [("b", 92, []), ("x", 91, []), ("", 91, []), ("a", 0, [(2, 4096)])] == credentials(
        client, "b", "x", "b", "", "a"
    )


def test_a_credential_that_cannot_be_read_is_an_error(stage: MemoryBroker) -> None:
    client = EmbeddedZnodeClient(stage.store, 1 << 30)
    drive(client.connect()).result()
    data = b'{"version":1,"config":{"SCRAM-SHA-256":"odd"}}'
    drive(client.create("/config/users/bad", data)).result()
    drive(client.create("/config/users/worse", b"odd")).result()
    assert [("bad", -1, []), ("worse", -1, [])] == credentials(stage.connect())


def test_only_the_controller_alters_credentials(stage: MemoryBroker) -> None:
    stage.broker.controller.stop()
    assert [("a", 41, "This is not the correct controller for this cluster.")] == alter_credentials(
        stage.connect(), ("a", 1, 4096)
    )
