"""After any damage to a log: a check ends, a repair leaves a prefix, a second one does nothing."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.host.memory import MemoryFiles
from engine.inspection.repair import repair_in_place
from engine.inspection.repair_actions import RepairOptions
from engine.inspection.repair_plan import plan_repair
from engine.inspection.verify import VerifyOptions, verify_partition
from engine.log.directory.leader_epoch_checkpoint import EpochStart
from engine.log.producer_snapshot import ProducerEntry, encode_producer_snapshot
from engine.log.txn_index import AbortedTransaction, encode_txn_index
from engine.naming import FileKind
from tests.unit.log.logs import (
    DIR,
    batch,
    data_of,
    get,
    log_of,
    marker_of,
    name_of,
    partition_of,
    put,
)

OPTIONS = RepairOptions(index_interval_bytes=100)

#: What no checksum covers or no local repair can bring back.
KEPT = {
    "batch-magic",
    "offset-gap",
    "offset-overlap",
    "epoch-order",
    "epochs-wrong",
    "unknown-file",
    "snapshot-place",
    "findings-left-out",
    "metadata-corrupt",
}

DAMAGE = st.lists(
    st.tuples(
        st.integers(0, 30),
        st.sampled_from(["flip", "cut", "grow", "zero", "remove", "swap"]),
        st.integers(0, 10_000),
        st.integers(1, 255),
    ),
    min_size=1,
    max_size=4,
)


def healthy() -> MemoryFiles:
    """Return three segments with every kind of side file."""
    first = b"".join(batch(n) for n in range(5)) + data_of(1, 5) + marker_of(1, 6)
    second = batch(7, 3, epoch=2) + batch(10, 4, epoch=2)
    files = log_of(
        {0: first, 7: second, 14: batch(14, epoch=2)},
        epochs=(EpochStart(0, 0), EpochStart(2, 7)),
    )
    aborted = AbortedTransaction(1, 5, 6, 7)
    put(files, name_of(0, FileKind.TXNINDEX), encode_txn_index([aborted]))
    snapshot = encode_producer_snapshot([ProducerEntry(1, 0, 0, 5, 0, 1)])
    for offset in (7, 14, 15):
        put(files, name_of(offset, FileKind.SNAPSHOT), snapshot)
    put(files, "partition.metadata", b"version: 0\ntopic_id: 8K4IcCorRNC2tJ_T-wo19A")
    return files


def hurt(files: MemoryFiles, number: int, kind: str, position: int, value: int) -> None:
    names = [name for name in files.list_dir(DIR) if not name.endswith(".swap")]
    name = names[number % len(names)]
    content = bytearray(get(files, name))
    at = position % (len(content) + 1)
    if kind == "remove":
        files.remove(f"{DIR}/{name}")
        return
    if kind == "swap":
        put(files, name + ".swap", bytes(content[:at]))
        return
    if kind == "flip" and content:
        content[at % len(content)] ^= value
    elif kind == "cut":
        del content[at:]
    elif kind == "grow":
        content += bytes([value]) * (at % 100)
    elif kind == "zero":
        content[at : at + value] = bytes(len(content[at : at + value]))
    put(files, name, bytes(content))


def logs_of(files: MemoryFiles) -> dict[str, bytes]:
    return {n: get(files, n) for n in files.list_dir(DIR) if n.endswith(".log")}


def codes(files: MemoryFiles) -> set[str]:
    report = verify_partition(files, partition_of(files), None, VerifyOptions(deep=True))
    return {finding.code for finding in report.findings}


@settings(max_examples=100)
@given(DAMAGE)
def test_any_damage_is_checked_and_repaired_to_a_state_that_stays(
    damage: list[tuple[int, str, int, int]],
) -> None:
    files = healthy()
    for number, kind, position, value in damage:
        if logs_of(files):
            hurt(files, number, kind, position, value)
    if not logs_of(files):
        return
    codes(files)
    before = logs_of(files)
    swapped = any(kind == "swap" for _, kind, _, _ in damage)
    plan = plan_repair(files, partition_of(files), OPTIONS)
    repair_in_place(files, plan, backup=False)
    for name, content in logs_of(files).items():
        assert swapped or before[name].startswith(content)
        assert plan.log_bytes[int(name[:20])] == len(content)
    if not logs_of(files):
        return
    left = codes(files)
    if "offset-overlap" in left:
        # No checksum covers a batch's base offset, and no index can hold offsets that fall back.
        left -= {"index-entry", "timeindex-entry"}
    assert left <= KEPT
    assert plan_repair(files, partition_of(files), OPTIONS).actions == ()


@given(DAMAGE)
def test_ordinary_batches_take_the_short_way_to_the_same_findings(
    damage: list[tuple[int, str, int, int]],
) -> None:
    files = healthy()
    for number, kind, position, value in damage:
        if logs_of(files):
            hurt(files, number, kind, position, value)
    partition = partition_of(files, "/data")
    quick = verify_partition(files, partition)
    # Opening every batch, no batch takes the fast path.
    deep = verify_partition(files, partition, None, VerifyOptions(deep=True))
    found = tuple(f for f in deep.findings if f.code != "batch-records")
    assert quick == deep._replace(findings=found)


def test_the_undamaged_log_is_healthy() -> None:
    files = healthy()
    assert codes(files) == set()
    assert plan_repair(files, partition_of(files), OPTIONS).actions == ()
