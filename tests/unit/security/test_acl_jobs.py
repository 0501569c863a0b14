"""What jobs need."""

from __future__ import annotations

from engine.security.acl_jobs import JobNames, NeededRule, needed_rules
from engine.security.acls import AclOperation, AclPattern, AclResource, PatternType

LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED


def needed(names: JobNames, pattern_type: PatternType = LITERAL) -> set[tuple[str, str, str, str]]:
    """Return what a job needs as words."""
    return {
        (need.operation.name, *(part.name for part in (need.resource.kind,)), need.resource.name,
         need.resource.pattern_type.name)
        for need in needed_rules(names, pattern_type=pattern_type)
    }  # fmt: skip


def test_a_consumer_reads_its_topics_and_its_group() -> None:
    wanted = {("READ", "TOPIC", "t", "LITERAL"), ("READ", "GROUP", "g", "LITERAL")}
    assert wanted == needed(JobNames(read_topics=["t"], groups=["g"]))


def test_a_producer_needs_no_right_on_the_cluster() -> None:
    assert {("WRITE", "TOPIC", "t", "LITERAL")} == needed(JobNames(written_topics=["t"]))


def test_a_transactional_producer_writes_its_id_too() -> None:
    names = JobNames(written_topics=["t"], transactional_ids=["x"])
    wanted = {("WRITE", "TOPIC", "t", "PREFIXED"), ("WRITE", "TRANSACTIONAL_ID", "x", "PREFIXED")}
    assert wanted == needed(names, PREFIXED)


def test_streams_needs_its_own_topics_and_ids_by_prefix() -> None:
    names = JobNames(read_topics=["in"], written_topics=["out"], application_id="app")
    wanted = {
        ("READ", "TOPIC", "in", "LITERAL"),
        ("WRITE", "TOPIC", "out", "LITERAL"),
        ("READ", "GROUP", "app", "LITERAL"),
        ("WRITE", "TRANSACTIONAL_ID", "app-", "PREFIXED"),
        *((op, "TOPIC", "app-", "PREFIXED") for op in ("READ", "WRITE", "CREATE", "DELETE")),
    }
    assert wanted == needed(names)


def test_a_need_is_listed_once() -> None:
    need = NeededRule(AclPattern(AclResource.TOPIC, "t", LITERAL), AclOperation.READ)
    assert [need] == needed_rules(JobNames(read_topics=["t", "t"]), pattern_type=LITERAL)
