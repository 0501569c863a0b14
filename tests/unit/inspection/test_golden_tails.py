"""Logs whose offsets go wrong: a repair leaves what a real broker's recovery left."""

from __future__ import annotations

from typing import Any

import pytest

from engine.host.memory import MemoryFiles
from engine.inspection.findings import Finding
from engine.inspection.repair import repair_in_place
from engine.inspection.repair_actions import RepairOptions
from engine.inspection.repair_plan import plan_repair
from engine.inspection.verify import VerifyOptions, verify_partition
from engine.log.directory.log_dir import PartitionFolder, find_log_dir
from tests.golden_tails import KINDS, answer_of, recipes_of
from tests.recovered_tails import disk_of, listing
from tests.recovery_tails import LogRecipe


def partition_at(files: MemoryFiles, path: str) -> PartitionFolder:
    return find_log_dir(files, path).partitions[0]


def repaired(recipe: LogRecipe, **options: Any) -> tuple[MemoryFiles, str]:
    files, path = disk_of(recipe)
    requested = RepairOptions(recipe.interval_bytes, **options)
    plan = plan_repair(files, partition_at(files, path), requested)
    repair_in_place(files, plan, backup=False)
    return files, path


def findings(files: MemoryFiles, path: str) -> list[Finding]:
    # A log whose middle was cut out by nobody has no gaps but those of the recipe.
    options = VerifyOptions(compacted=True)
    return list(verify_partition(files, partition_at(files, path), options=options).findings)


def kept(files: dict[str, list[Any]], suffixes: tuple[str, ...]) -> dict[str, list[Any]]:
    return {name: row for name, row in files.items() if name.endswith(suffixes)}


@pytest.mark.parametrize("kind", KINDS)
def test_a_repair_leaves_the_logs_a_broker_s_recovery_leaves(kind: str) -> None:
    for recipe in recipes_of(kind):
        real = answer_of(recipe)
        if not real.get("fatal"):
            files, path = repaired(recipe, recovery_point=recipe.recovery_point)
            ours = kept(listing(files, path), (".log",))
            assert kept(real["files"], (".log",)) == ours, recipe.name


@pytest.mark.parametrize("kind", KINDS)
def test_rebuilt_indexes_are_a_broker_s_byte_for_byte(kind: str) -> None:
    for recipe in recipes_of(kind):
        real = answer_of(recipe)
        if real.get("fatal") or recipe.recovery_point >= recipe.segments[-1].base_offset:
            continue
        options = {"recovery_point": recipe.recovery_point, "rebuild_all": True}
        files, path = repaired(recipe, **options)
        from_point = max(
            (s.base_offset for s in recipe.segments if s.base_offset <= recipe.recovery_point),
            default=0,
        )
        suffixes = (".index", ".timeindex")
        theirs, ours = (
            {n: row for n, row in kept(f, suffixes).items() if int(n.split(".")[0]) >= from_point}
            for f in (real["files"], listing(files, path))
        )
        # A broker makes an empty index of an empty segment at once, a repair leaves it to it.
        assert {n: r for n, r in theirs.items() if r[0]} == {
            n: r for n, r in ours.items() if r[0]
        }, recipe.name


@pytest.mark.parametrize("kind", KINDS)
def test_every_segment_has_its_indexes_after_a_repair(kind: str) -> None:
    for recipe in recipes_of(kind):
        files, path = repaired(recipe)
        names = set(files.list_dir(path))
        stems = {name.removesuffix(".log") for name in names if name.endswith(".log")}
        assert {f"{stem}{end}" for stem in stems for end in (".index", ".timeindex")} <= names


@pytest.mark.parametrize("kind", KINDS)
def test_a_check_finds_nothing_after_a_repair_but_what_brokers_keep(kind: str) -> None:
    for recipe in recipes_of(kind):
        files, path = repaired(recipe)
        codes = {finding.code for finding in findings(files, path)}
        assert codes <= {"offset-overlap", "epoch-order", "epochs-wrong"}, recipe.name
        if codes:
            assert "offset-overlap" in codes, recipe.name


@pytest.mark.parametrize("kind", KINDS)
def test_a_check_finds_nothing_after_a_repair_that_cuts_overlaps(kind: str) -> None:
    for recipe in recipes_of(kind):
        files, path = repaired(recipe, cuts_overlaps=True)
        assert [] == findings(files, path), recipe.name


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_repair_has_nothing_to_do(kind: str) -> None:
    for recipe in recipes_of(kind):
        files, path = repaired(recipe)
        options = RepairOptions(recipe.interval_bytes)
        assert () == plan_repair(files, partition_at(files, path), options).actions, recipe.name
