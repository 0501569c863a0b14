"""Access rules in znodes: written as Kafka writes them, and read again."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any

import pytest

from engine.admin.acl_admin import AclAdmin, AclWriteFailed, DeletedAcl, pattern_of
from engine.host.coroutine import drive
from engine.host.memory import ManualClock
from engine.security.acl_cache import AclCache
from engine.security.acls import (
    AccessEntry,
    AclBinding,
    AclFilter,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResource,
    EntryFilter,
    PatternFilter,
    PatternType,
)
from engine.znode.acl_values import AclChange
from engine.znode.embedded import EmbeddedZnodeClient
from engine.znode.errors import BadVersion, NodeExists, NoNode
from engine.znode.json_text import InvalidZnodeValue
from engine.znode.memory_journal import MemoryJournal
from engine.znode.model import Operation, OperationResult
from engine.znode.store import ZnodeStore

T = AclPattern(AclResource.TOPIC, "t", PatternType.LITERAL)
PRE = AclPattern(AclResource.TOPIC, "pre", PatternType.PREFIXED)
BOB_READS = AccessEntry("User:bob", "*", AclOperation.READ, AclPermission.ALLOW)
ANN_READS = BOB_READS._replace(principal="User:ann")
EVERY_ENTRY = EntryFilter(None, None, AclOperation.ANY, AclPermission.ANY)
BOB_TEXT = b'{"principal":"User:bob","permissionType":"Allow","host":"*","operation":"Read"}'
ANN_TEXT = BOB_TEXT.replace(b"bob", b"ann")


class RivalClient(EmbeddedZnodeClient):
    """Another broker is faster: `rival` runs before each write, once.

    `late` runs before the response, as if it was lost and the write found done.
    """

    rival: Any = None
    late: Any = None

    async def multi(self, operations: Sequence[Operation]) -> list[OperationResult]:
        rival, self.rival = self.rival, None
        if rival is not None:
            await rival()
        results = await super().multi(operations)
        late, self.late = self.late, None
        if late is not None:
            await late()
        return results


class Stage:
    """Rules over a store."""

    def __init__(self) -> None:
        self.store = ZnodeStore(MemoryJournal(), ManualClock())
        self.client = self.connect()
        self.other = self.connect()
        self.changes = 0
        self.admin = AclAdmin(self.client, AclCache())
        self.admin.on_change = self._count
        self.do(self.admin.create_paths())

    def _count(self) -> None:
        self.changes += 1

    def connect(self) -> RivalClient:
        client = RivalClient(self.store, 18_000)
        self.do(client.connect())
        return client

    def do(self, work: Coroutine[Any, None, Any]) -> Any:
        return drive(work).result()

    def add(self, *bindings: AclBinding) -> Any:
        return self.do(self.admin.create(bindings))

    def data(self, path: str) -> bytes | None:
        try:
            found: bytes | None = self.do(self.client.get(path))[0]
        except NoNode:
            return None
        return found

    def notes(self) -> list[bytes]:
        return [
            self.do(self.client.get(f"{parent}/{name}"))[0]
            for parent in ("/kafka-acl-changes", "/kafka-acl-extended-changes")
            for name in self.do(self.client.children(parent))
        ]


@pytest.fixture
def stage() -> Stage:
    return Stage()


def removal_of(pattern: AclPattern, entries: EntryFilter = EVERY_ENTRY) -> AclFilter:
    return AclFilter(PatternFilter(*pattern), entries)


def test_rules_lie_where_kafka_puts_them(stage: Stage) -> None:
    assert [None] * 3 == stage.add(
        AclBinding(T, BOB_READS), AclBinding(PRE, ANN_READS), AclBinding(T, ANN_READS)
    )
    both = b'{"acls":[' + BOB_TEXT + b"," + ANN_TEXT + b'],"version":1}'
    assert both == stage.data("/kafka-acl/Topic/t")
    assert b'{"acls":[' + ANN_TEXT + b'],"version":1}' == stage.data(
        "/kafka-acl-extended/prefixed/Topic/pre"
    )
    assert [
        b"TOPIC:t",
        b'{"version":1,"resourceType":"TOPIC","name":"pre","patternType":"PREFIXED"}',
    ] == stage.notes()
    assert (BOB_READS, ANN_READS) == stage.admin.cache.entries(T)


def test_an_entry_that_is_there_is_written_again_without_a_note(stage: Stage) -> None:
    stage.add(AclBinding(T, BOB_READS))
    assert [None] == stage.add(AclBinding(T, BOB_READS))
    assert 1 == stage.do(stage.client.get("/kafka-acl/Topic/t"))[1].version
    assert [b"TOPIC:t"] == stage.notes()


def test_the_last_entry_takes_its_node_along(stage: Stage) -> None:
    stage.add(AclBinding(T, BOB_READS), AclBinding(T, ANN_READS))
    of_bob = removal_of(T, EVERY_ENTRY._replace(principal="User:bob"))
    assert [[DeletedAcl(AclBinding(T, BOB_READS), None)], []] == stage.do(
        stage.admin.delete([of_bob, of_bob])
    )
    assert b'{"acls":[' + ANN_TEXT + b'],"version":1}' == stage.data("/kafka-acl/Topic/t")
    stage.do(stage.admin.delete([removal_of(T)]))
    assert stage.data("/kafka-acl/Topic/t") is None
    assert stage.admin.cache.is_empty
    assert [b"TOPIC:t"] * 3 == stage.notes()


def test_a_later_change_of_others_that_was_read_before_the_own_response_holds(
    stage: Stage,
) -> None:
    others = AclAdmin(stage.other, AclCache())

    async def remove() -> None:
        await others.delete([removal_of(T)])
        await stage.admin.refresh(T)

    stage.client.late = remove
    assert [None] == stage.add(AclBinding(T, BOB_READS))
    assert () == stage.admin.cache.entries(T)


def test_rules_of_others_are_removed_by_an_exact_filter_before_their_note_came(
    stage: Stage,
) -> None:
    others = AclAdmin(stage.other, AclCache())
    stage.do(others.create([AclBinding(T, BOB_READS)]))
    by_match = AclFilter(PatternFilter(AclResource.TOPIC, "t", PatternType.MATCH), EVERY_ENTRY)
    assert [[]] == stage.do(stage.admin.delete([by_match]))
    assert [[DeletedAcl(AclBinding(T, BOB_READS), None)]] == stage.do(
        stage.admin.delete([removal_of(T)])
    )


def test_nothing_is_written_where_there_was_nothing_to_remove(stage: Stage) -> None:
    before = stage.store.zxid
    assert [[]] == stage.do(stage.admin.delete([removal_of(T)]))
    assert before == stage.store.zxid


def test_a_principal_without_a_type_keeps_its_pattern_out(stage: Stage) -> None:
    nobody = BOB_READS._replace(principal="bob")
    errors = stage.add(AclBinding(T, BOB_READS), AclBinding(T, nobody), AclBinding(PRE, BOB_READS))
    assert [AclWriteFailed, AclWriteFailed, type(None)] == [type(error) for error in errors]
    assert stage.data("/kafka-acl/Topic/t") is None


def test_a_name_that_no_node_can_have_is_an_error(stage: Stage) -> None:
    (error,) = stage.add(AclBinding(T._replace(name="."), BOB_READS))
    assert error is not None
    assert [[]] == stage.do(stage.admin.delete([removal_of(T._replace(name=""))]))


def test_who_is_overtaken_reads_again(stage: Stage) -> None:
    others = AclAdmin(stage.other, AclCache())

    async def create() -> None:
        await others.create([AclBinding(T, ANN_READS)])

    async def delete() -> None:
        await others.delete([removal_of(T)])

    stage.client.rival = create
    assert [None] == stage.add(AclBinding(T, BOB_READS))
    assert (ANN_READS, BOB_READS) == stage.admin.cache.entries(T)
    stage.client.rival = delete
    assert [None] == stage.add(AclBinding(T, ANN_READS))
    assert (ANN_READS,) == stage.admin.cache.entries(T)
    stage.client.rival = delete
    ((deleted,),) = stage.do(stage.admin.delete([removal_of(T)]))
    assert (ANN_READS, None) == (deleted.binding.entry, deleted.error)
    assert stage.admin.cache.is_empty


@pytest.mark.parametrize("error", [BadVersion("/t", 1, 2), NodeExists("/t")])
def test_who_is_always_overtaken_gives_up(stage: Stage, error: Exception) -> None:
    async def refuse(*_args: Any, **_how: Any) -> None:
        raise error

    stage.client.multi = refuse  # type: ignore[method-assign]
    (failure,) = stage.add(AclBinding(T, BOB_READS))
    assert isinstance(failure, AclWriteFailed)
    assert T == failure.pattern
    assert "TOPIC t: others wrote it too, 11 times" == str(failure)


def test_a_pattern_whose_kind_has_no_node_is_an_error(stage: Stage) -> None:
    stage.do(stage.client.delete("/kafka-acl/Topic"))
    (error,) = stage.add(AclBinding(T, BOB_READS))
    assert isinstance(error, NoNode)


def test_a_removal_without_a_place_for_its_note_is_an_error(stage: Stage) -> None:
    stage.add(AclBinding(T, BOB_READS))
    stage.do(stage.client.delete("/kafka-acl-changes/acl_changes_0000000000"))
    stage.do(stage.client.delete("/kafka-acl-changes"))
    ((deleted,),) = stage.do(stage.admin.delete([removal_of(T)]))
    assert isinstance(deleted.error, NoNode)
    assert stage.data("/kafka-acl/Topic/t") is not None


def test_rules_that_could_not_be_removed_say_so(stage: Stage) -> None:
    stage.add(AclBinding(T, BOB_READS))

    async def refuse(*_args: Any, **_how: Any) -> None:
        raise BadVersion("/t", 1, 2)

    stage.client.multi = refuse  # type: ignore[method-assign]
    ((deleted,),) = stage.do(stage.admin.delete([removal_of(T)]))
    assert isinstance(deleted.error, AclWriteFailed)


def test_everything_is_read_at_once(stage: Stage) -> None:
    stage.add(AclBinding(T, BOB_READS), AclBinding(PRE, BOB_READS))
    stage.do(stage.client.create("/kafka-acl/Nonsense"))
    again = AclAdmin(stage.other, AclCache())
    again.cache.set(T._replace(name="gone"), [BOB_READS])
    for pattern_type in (PatternType.LITERAL, PatternType.PREFIXED):
        stage.do(again.load(pattern_type))
    assert [T, PRE] == again.cache.patterns()
    assert (BOB_READS,) == again.cache.entries(PRE)


def test_a_caller_is_notified_of_the_first_rule_and_of_the_last(stage: Stage) -> None:
    stage.do(stage.admin.refresh(T))
    assert 0 == stage.changes
    stage.add(AclBinding(T, BOB_READS))
    assert 1 == stage.changes
    stage.add(AclBinding(PRE, BOB_READS))
    assert 1 == stage.changes
    stage.do(stage.admin.delete([removal_of(T)]))
    assert 1 == stage.changes
    stage.do(stage.admin.delete([removal_of(PRE)]))
    assert 2 == stage.changes


def test_a_caller_is_notified_once_that_all_rules_were_read(stage: Stage) -> None:
    names = [T._replace(name=f"t{number}") for number in range(5)]
    stage.add(*(AclBinding(pattern, BOB_READS) for pattern in names))
    before = stage.changes
    stage.do(stage.admin.load(PatternType.LITERAL))
    assert before + 1 == stage.changes


def test_a_node_that_cannot_be_read_is_an_error(stage: Stage) -> None:
    stage.do(stage.client.create("/kafka-acl/Topic/t", b"nonsense"))
    with pytest.raises(InvalidZnodeValue):
        stage.do(stage.admin.refresh(T))


def test_a_note_names_a_pattern() -> None:
    change = AclChange("TRANSACTIONAL_ID", "x", "PREFIXED")
    wanted = AclPattern(AclResource.TRANSACTIONAL_ID, "x", PatternType.PREFIXED)
    assert wanted == pattern_of(change)
