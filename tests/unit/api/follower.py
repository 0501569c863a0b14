"""A broker that follows two partitions of a `DataStage`, by a session, in frames."""

from __future__ import annotations

import struct
from typing import Any

from engine.host.ports import Connection
from engine.wire.codec import message_codec
from engine.wire.fast_replica_bytes import FETCH_KEY
from engine.wire.headers import encode_request_header
from engine.wire.structs import message_class
from tests.unit.api.data_stage import TOPIC_ID, DataStage


class Follower:
    """A broker that follows two partitions by a session on a connection of its own."""

    def __init__(self, stage: DataStage, replica_id: int = 2) -> None:
        self._replica_id = replica_id
        self.frames: list[bytes] = []
        self._stage = stage
        self.connect()
        self._read = self._request_count = 0
        self._session, self._epoch = 0, 0
        self._ends, self._told = [0, 0], [-1, -1]
        self._fetched_epochs, self._leader_epochs = [-1, -1], [0, 0]

    def connect(self) -> Connection:
        """Go on over another connection; return it."""
        self.connection = self._stage.network.connect("here", self._stage.port)
        self.connection.on_frame = lambda frame: self.frames.append(bytes(frame))
        return self.connection

    def ask(self, kind: str) -> None:
        """Send the next request, if the one before has its response."""
        if self._read < len(self.frames):
            self._take(self.frames[self._read])
            self._read += 1
        elif self._read != self._request_count:
            return
        made = message_class("FetchRequest")
        named = [
            index for index in (0, 1) if kind == "all" or self._told[index] != self._ends[index]
        ]
        if kind == "nothing":
            named = []
        for index in named:
            self._told[index] = self._ends[index]
        topic = made.FetchTopic(
            topic_id=TOPIC_ID,
            partitions=[
                made.FetchPartition(
                    partition=index,
                    current_leader_epoch=self._leader_epochs[index],
                    fetch_offset=self._ends[index],
                    last_fetched_epoch=self._fetched_epochs[index],
                    log_start_offset=0,
                    partition_max_bytes=1 << 20,
                )
                for index in named
            ],
        )
        more: dict[str, Any] = {}
        if kind == "forget":
            forgotten = made.ForgottenTopic(topic_id=TOPIC_ID, partitions=[1])
            more["forgotten_topics_data"] = [forgotten]
        request = made(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=100 if kind == "little" else 1 << 20,
            session_id=self._session,
            session_epoch=self._epoch + (kind == "wrong"),
            replica_state=made.ReplicaState(replica_id=self._replica_id, replica_epoch=5),
            topics=[topic] if named else [],
            rack_id="r" if kind == "rack" else "",
            **more,
        )
        head = encode_request_header(FETCH_KEY, 17, 77, "broker-2-fetcher-0")
        self.connection.send([head + message_codec("FetchRequest", 17).encode(request)])
        self._request_count += 1
        self._stage.timers.run_until_idle()

    def _take(self, frame: bytes) -> None:
        response = message_codec("FetchResponse", 17).decode(memoryview(frame)[5:])
        if response.error_code or not response.session_id:
            self._session, self._epoch, self._told = 0, 0, [-1, -1]
            return
        self._session, self._epoch = response.session_id, self._epoch + 1
        for topic in response.responses:
            for row in topic.partitions:
                self._take_row(row)

    def _take_row(self, row: Any) -> None:
        records, index = bytes(row.records or b""), row.partition_index
        if row.error_code:
            self._told[index] = -1
            self._leader_epochs[index] += row.error_code == 74
        elif row.diverging_epoch.epoch >= 0:
            self._ends[index] = min(self._ends[index], row.diverging_epoch.end_offset)
        while len(records) >= 61:
            first, length, epoch = struct.unpack_from(">qii", records)
            (delta,) = struct.unpack_from(">i", records, 23)
            self._ends[index], self._fetched_epochs[index] = first + delta + 1, epoch
            records = records[12 + length :]

    def said(self, number: int = -1) -> list[tuple[int, int, int, int]]:
        """Return index, error, watermark and bytes of each partition of a response."""
        response = message_codec("FetchResponse", 17).decode(memoryview(self.frames[number])[5:])
        return [
            (row.partition_index, row.error_code, row.high_watermark, len(row.records or b""))
            for topic in response.responses
            for row in topic.partitions
        ]
