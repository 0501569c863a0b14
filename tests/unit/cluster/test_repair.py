"""Metadata that is written again from log directories alone."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from engine.cluster import repair
from engine.cluster.data_directory import DataDirectory
from engine.cluster.found_topics import FoundReplica, group_topics
from engine.cluster.plan import ClusterPlan
from engine.cluster.repair import NothingToRepairFrom
from engine.host.memory import ManualClock
from engine.host.real import RealFiles
from engine.log.producer_snapshot import ProducerEntry, encode_producer_snapshot
from engine.znode.errors import ZnodeStoreDamaged, ZnodeStoreFailed
from engine.znode.sqlite_journal import SqliteJournal, failure
from engine.znode.values import decode_partition_state, decode_producer_id_block, decode_topic

FILES = RealFiles()
CLOCK = ManualClock()
CLUSTER_ID = "2Qe4I_4CSUacTiZGVbIiDA"
TOPIC_ID = "8K4IcCorRNC2tJ_T-wo19A"
OTHER_ID = "9K4IcCorRNC2tJ_T-wo19A"


@pytest.fixture
def data(tmp_path: Path) -> DataDirectory:
    data = DataDirectory(FILES, str(tmp_path / "cluster"))
    data.write_plan(ClusterPlan(port=9099))
    logs = tmp_path / "cluster" / "broker-1"
    logs.mkdir()
    (logs / "meta.properties").write_text(f"version=0\nbroker.id=1\ncluster.id={CLUSTER_ID}\n")
    _partition(logs, "t-0", TOPIC_ID, epoch=4)
    _partition(logs, "t-2", TOPIC_ID, epoch=0)
    _partition(logs, "__consumer_offsets-0", OTHER_ID, epoch=1)
    _partition(logs, f"old-0.{'0' * 32}-delete", OTHER_ID, epoch=1)
    return data


def _partition(logs: Path, name: str, topic_id: str, *, epoch: int) -> Path:
    folder = logs / name
    folder.mkdir()
    (folder / "00000000000000000000.log").write_bytes(bytes(100))
    (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
    (folder / "leader-epoch-checkpoint").write_text(f"0\n1\n{epoch} 0\n")
    return folder


def _nodes(data: DataDirectory) -> dict[str, bytes | None]:
    journal = SqliteJournal(data.store_path)
    nodes = {path: node.data for path, node in journal.load().nodes}
    journal.close()
    return nodes


def test_a_store_is_written_again_with_ids_partitions_and_leaders(data: DataDirectory) -> None:
    found = repair.examine_for_repair(data, FILES)
    assert ({data.store_path: "missing or empty"}, None) == (found.reasons, found.plan)
    assert [] == repair.apply(data, FILES, CLOCK, found)
    nodes = _nodes(data)
    assert f'"{CLUSTER_ID}"'.encode() in (nodes["/cluster/id"] or b"")
    topic = decode_topic(nodes["/brokers/topics/t"], "")
    assert (TOPIC_ID, [0, 1, 2]) == (topic.topic_id, list(topic.partitions))
    assert {(1,)} == {partition.replicas for partition in topic.partitions.values()}
    state = decode_partition_state(nodes["/brokers/topics/t/partitions/0/state"], "")
    assert (1, 4, (1,)) == (state.leader, state.leader_epoch, state.isr)
    assert "/brokers/topics/t/partitions/1" not in nodes
    assert "/brokers/topics/old" not in nodes
    assert not repair.examine_for_repair(data, FILES).is_needed


def test_no_retention_takes_records_of_a_repaired_topic(data: DataDirectory) -> None:
    found = repair.examine_for_repair(data, FILES)
    repair.apply(data, FILES, CLOCK, found)
    nodes = _nodes(data)
    assert b'"retention.ms":"-1"' in (nodes["/config/topics/t"] or b"")
    assert b'"cleanup.policy":"compact"' in (nodes["/config/topics/__consumer_offsets"] or b"")
    assert any("the settings of topics are lost" in note for note in found.notes)
    assert any("t: no directory of partition 1" in note for note in found.notes)


def test_new_producer_ids_lie_behind_all_that_were_given_out(data: DataDirectory) -> None:
    snapshot = encode_producer_snapshot([ProducerEntry(4_321_000, 0, 5, 10, 0, 17)])
    Path(data.path, "broker-1", "t-0", "00000000000000000011.snapshot").write_bytes(snapshot)
    repair.apply(data, FILES, CLOCK, repair.examine_for_repair(data, FILES))
    block = decode_producer_id_block(_nodes(data)["/latest_producer_id_block"], "")
    assert block is not None
    assert 5_999_999 == block.last_producer_id


@pytest.mark.parametrize("content", [b"no database at all, but some bytes" * 100, b""])
def test_a_damaged_store_is_set_aside(data: DataDirectory, content: bytes) -> None:
    Path(data.store_path).write_bytes(content)
    (aside,) = repair.apply(data, FILES, CLOCK, repair.examine_for_repair(data, FILES))
    assert content == Path(aside).read_bytes()
    assert "/brokers/topics/t" in _nodes(data)


def test_a_store_of_another_cluster_is_replaced(data: DataDirectory) -> None:
    SqliteJournal(data.store_path).close()
    found = repair.examine_for_repair(data, FILES)
    assert f"the logs are of {CLUSTER_ID}" in found.reasons[data.store_path]


@pytest.mark.parametrize("content", [None, "{", "[]"])
def test_a_plan_is_written_again_and_a_whole_store_stays(
    data: DataDirectory, content: str | None
) -> None:
    repair.apply(data, FILES, CLOCK, repair.examine_for_repair(data, FILES))
    before = Path(data.store_path).read_bytes()
    if content is None:
        Path(data.plan_path).unlink()
    else:
        Path(data.plan_path).write_text(content)
    found = repair.examine_for_repair(data, FILES)
    assert (ClusterPlan(), None) == (found.plan, found.found)
    aside = repair.apply(data, FILES, CLOCK, found)
    assert (content is not None) == bool(aside)
    assert ClusterPlan() == data.plan()
    assert before == Path(data.store_path).read_bytes()


def test_looking_changes_nothing(data: DataDirectory, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    repair.examine_for_repair(data, FILES)
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


def test_where_nothing_is_nothing_is_repaired(data: DataDirectory) -> None:
    shutil.rmtree(f"{data.path}/broker-1")
    assert not repair.examine_for_repair(data, FILES).is_needed
    Path(data.plan_path).unlink()
    with pytest.raises(NothingToRepairFrom):
        repair.examine_for_repair(data, FILES)


def test_a_file_that_cannot_be_read_costs_what_it_says(data: DataDirectory) -> None:
    Path(data.path, "broker-1", "t-0", "partition.metadata").write_text("nonsense")
    Path(data.path, "broker-1", "t-0", "leader-epoch-checkpoint").write_text("nonsense")
    found = repair.examine_for_repair(data, FILES).found
    assert found is not None
    topic = {topic.name: topic for topic in found.topics}["t"]
    assert (TOPIC_ID, None) == (topic.topic_id, topic.partitions[0][0].leader_epoch)
    assert 2 == len(found.problems)


def _replica(broker_id: int, epoch: int, log_bytes: int, topic_id: str = TOPIC_ID) -> FoundReplica:
    return FoundReplica("t", 0, broker_id, f"/{broker_id}/t-0", topic_id, epoch, log_bytes)


def test_the_replica_that_holds_most_leads() -> None:
    (topic,) = group_topics([_replica(1, 3, 900), _replica(2, 4, 10), _replica(3, 4, 20)], [])
    assert [3, 2, 1] == [replica.broker_id for replica in topic.partitions[0]]


def test_a_directory_of_another_topic_id_is_left_out_and_named() -> None:
    problems: list[str] = []
    replicas = [_replica(1, 3, 9), _replica(2, 3, 9), _replica(3, 4, 20, OTHER_ID)]
    (topic,) = group_topics(replicas, problems)
    assert [1, 2] == [replica.broker_id for replica in topic.partitions[0]]
    assert problems[0].startswith(f"/3/t-0: topic id {OTHER_ID}")


@pytest.mark.parametrize(
    ("code", "is_damaged", "hint"),
    [
        (sqlite3.SQLITE_NOTADB, True, "`kctl cluster repair --data /d`"),
        (sqlite3.SQLITE_CORRUPT, True, "`kctl cluster repair --data /d`"),
        (sqlite3.SQLITE_READONLY, False, "make the file and its folder writable"),
        (sqlite3.SQLITE_CANTOPEN, False, "make the file and its folder writable"),
        (sqlite3.SQLITE_BUSY, False, "another process has it open"),
    ],
)
def test_what_is_wrong_with_a_store_says_the_way_on(code: int, is_damaged: bool, hint: str) -> None:
    error = sqlite3.OperationalError("told")
    error.sqlite_errorcode = code
    failed = failure("/d/znodes.sqlite", "open", error)
    assert is_damaged == isinstance(failed, ZnodeStoreDamaged)
    assert isinstance(failed, ZnodeStoreFailed)
    assert hint in str(failed.hint)
