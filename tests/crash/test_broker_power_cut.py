"""The power is cut at every operation of a broker that flushes each message (L1, L2, L3, L8).

The whole broker is in memory. Its metadata store keeps what it was told (SQLite syncs each
transaction; `tests/unit/znode/test_crash.py`), its disk keeps what was synced, and a part of what
was not. With acks=1 and a flush for each message, nothing acknowledged may be lost.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from engine.host.memory import MachineStopped, MemoryFiles
from engine.inspection.verify import verify_log_dir, verify_partition
from engine.log.directory.log_dir import read_log_dir
from engine.records.view import batches_in
from engine.wire.structs import message_class
from engine.znode.store import ZnodeStore
from tests.unit.broker.memory_broker import LOG_DIR, MemoryBroker, MemoryClient
from tests.unit.log.writing import sent, sent_by

SETTINGS = {
    "log_flush_interval_messages": "1",
    "log_segment_bytes": "400",
    "log_index_interval_bytes": "100",
    "log_segment_delete_delay_ms": "0",
    "auto_create_topics_enable": "false",
    # The first retention comes with the clock, which the test moves.
    "log_initial_task_delay_ms": "1",
}
_ROUNDS = 8


class Life:
    """One life of a broker, and what was promised to its clients."""

    def __init__(self, files: MemoryFiles) -> None:
        self.files = files
        self.stage = MemoryBroker(files, **SETTINGS)
        #: Values that were sent to kept-0, in order, and those that were acknowledged by offset.
        self.sent: list[bytes] = []
        self.acknowledged: dict[int, bytes] = {}
        self.created: set[str] = set()
        self.requested_to_delete: set[str] = set()
        self.deleted: set[str] = set()
        self.trimmed = 0
        self.is_stopped = False

    def run(self) -> None:
        """Live until the end, or until the power is cut."""
        self.files.make_dir(LOG_DIR)
        self.files.sync_dir("/")
        client = self.stage.start().connect()
        for name in ("kept", "gone"):
            self.create(client, name)
        for number in range(_ROUNDS):
            self.produce(client, number)
            self.stage.pass_time(100)
        self.trim(client)
        self.delete(client, "gone")
        self.create(client, "late")
        # Checkpoints, retention and the removal of files come with time.
        self.stage.pass_time(70_000)
        self.produce(client, _ROUNDS)
        self.stage.stop()
        self.is_stopped = True

    def create(self, client: MemoryClient, name: str) -> None:
        made = message_class("CreateTopicsRequest")
        topic = made.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        reply = client.ask("CreateTopics", 7, topics=[topic], timeout_ms=1000)
        assert reply.topics[0].error_code == 0
        self.created.add(name)

    def delete(self, client: MemoryClient, name: str) -> None:
        self.requested_to_delete.add(name)
        topic = message_class("DeleteTopicsRequest").DeleteTopicState(name=name)
        reply = client.ask("DeleteTopics", 6, topics=[topic], timeout_ms=1000)
        assert reply.responses[0].error_code == 0
        self.deleted.add(name)

    def produce(self, client: MemoryClient, number: int) -> None:
        value = b"value %d " % number * 6
        batch = sent_by(7, number // 2, value=value) if number % 2 else sent(value=value)
        self.sent.append(value)
        made = message_class("ProduceRequest")
        partition = made.PartitionProduceData(index=0, records=batch)
        topic = made.TopicProduceData(name="kept", partition_data=[partition])
        reply = client.ask("Produce", 9, acks=1, timeout_ms=1000, topic_data=[topic])
        answer = reply.responses[0].partition_responses[0]
        assert answer.error_code == 0
        self.acknowledged[answer.base_offset] = value

    def trim(self, client: MemoryClient) -> None:
        self.trimmed = 5
        made = message_class("DeleteRecordsRequest")
        partition = made.DeleteRecordsPartition(partition_index=0, offset=self.trimmed)
        topic = made.DeleteRecordsTopic(name="kept", partitions=[partition])
        reply = client.ask("DeleteRecords", 2, topics=[topic], timeout_ms=1000)
        assert reply.topics[0].partitions[0].error_code == 0

    # What must be there afterwards

    def check(self, disk: MemoryFiles) -> None:
        """Start on what the cut left, look at everything, stop, and start once more."""
        store = self.stage.store
        end = self._check_life(_request_log_dir_changes(disk, store), disk)
        reports = _request_log_dir_changes(disk, store)
        assert reports.broker.storage.logs.directories[0].is_online
        assert _end_of(reports) == end
        reports.stop()

    def _check_life(self, stage: MemoryBroker, disk: MemoryFiles) -> int:
        client = stage.connect()
        topics = client.ask("Metadata", 9, topics=None).topics
        names = {topic.name for topic in topics}
        assert self.created - self.requested_to_delete <= names
        assert not self.deleted & names
        live = [name for name in disk.list_dir(LOG_DIR) if name.endswith("-0")]
        assert {f"{name}-0" for name in names} == set(live)
        end = 0
        if "kept" in names:
            end = self._check_records(client)
        assert not stage.faults
        assert not stage.fatal
        stage.stop()
        self._check_files(disk)
        return end

    def _check_records(self, client: MemoryClient) -> int:
        start, end = _listed(client, -2), _listed(client, -1)
        assert start <= self.trimmed
        assert max(self.acknowledged, default=-1) < end <= len(self.sent)
        served: list[tuple[int, bytes]] = []
        while start + len(served) < end:
            found = _fetched(client, start + len(served))
            assert found
            served += found
        assert served == list(enumerate(self.sent))[start:end]
        return end

    def _check_files(self, disk: MemoryFiles) -> None:
        found = read_log_dir(disk, LOG_DIR)
        problems = [finding for finding in verify_log_dir(found) if finding.is_problem]
        for partition in found.partitions:
            if partition.is_kept:
                report = verify_partition(disk, partition, found.state)
                problems += [finding for finding in report.findings if finding.is_problem]
        assert not problems


def _request_log_dir_changes(disk: MemoryFiles, store: ZnodeStore) -> MemoryBroker:
    for session_id in store.session_ids():
        store.close_session(session_id)
    return MemoryBroker(disk, store, **SETTINGS).start()


def _fetched(client: MemoryClient, offset: int) -> list[tuple[int, bytes]]:
    """Return what one fetch brings: records of one segment."""
    made = message_class("FetchRequest")
    requested = made.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    topic = made.FetchTopic(topic="kept", partitions=[requested])
    reply = client.ask("Fetch", 12, max_wait_ms=0, max_bytes=1 << 20, topics=[topic])
    found = reply.responses[0].partitions[0]
    assert found.error_code == 0
    return [
        (record.offset, bytes(record.value or b""))
        for batch in batches_in(memoryview(found.records or b""), allow_partial_tail=False)
        for record in batch.records()
    ]


def _listed(client: MemoryClient, timestamp: int) -> int:
    made = message_class("ListOffsetsRequest")
    requested = made.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topic = made.ListOffsetsTopic(name="kept", partitions=[requested])
    reply: Any = client.ask("ListOffsets", 7, replica_id=-1, topics=[topic])
    found = reply.topics[0].partitions[0]
    assert found.error_code == 0
    offset: int = found.offset
    return offset


def _end_of(stage: MemoryBroker) -> int:
    logs = stage.broker.storage.logs.logs.values()
    return max(
        (log.log_end_offset for log in logs if log.topic_partition.topic == "kept"), default=0
    )


def test_the_life_ends_as_it_should_without_a_cut() -> None:
    life = Life(MemoryFiles())
    life.run()
    assert life.is_stopped
    life.check(life.files.after_crash())


@pytest.mark.slow
def test_nothing_acknowledged_and_flushed_is_lost_at_any_cut() -> None:
    files = MemoryFiles()
    Life(files).run()
    count = files.operations
    assert count > 150
    for number in range(count):
        files = MemoryFiles()
        files.stop_at(number)
        life = Life(files)
        with suppress(MachineStopped):
            life.run()
        assert not life.is_stopped
        # Nothing, half or all of what was not synced is kept, in turn.
        kept = files.unsynced_changes() * (number % 3) // 2
        life.check(files.after_crash(kept_changes=kept, torn_bytes=30))
