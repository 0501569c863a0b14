"""Requests of group members as frames, and members that join by them."""

from __future__ import annotations

import selectors
import socket
import struct
import time
from collections.abc import Iterable
from typing import Any, Final

from engine.wire import messages
from engine.wire.codec import message_codec
from engine.wire.headers import api, encode_request_header, response_header_version

_COMMIT_VERSION: Final = 8
_HEARTBEAT_VERSION: Final = 4
_JOIN_VERSION: Final = 7
_SYNC_VERSION: Final = 5
_LEAVE_VERSION: Final = 5
_FIND_VERSION: Final = 3
_MEMBER_ID_REQUIRED: Final = 79
_REBALANCE_IN_PROGRESS: Final = 27
_SESSION_MS: Final = 60_000
_TIMEOUT_S: Final = 60.0
_RECEIVED_BYTES: Final = 1 << 16


def frame_of(name: str, version: int, request: Any) -> bytes:
    """Return a request with its length and its header."""
    header = encode_request_header(api(name).key, version, 1, "perf")
    body = message_codec(f"{name}Request", version).encode(request)
    return struct.pack(">i", len(header) + len(body)) + header + body


def _decoded(name: str, version: int, frame: bytes) -> Any:
    start = 4 + response_header_version(api(name).key, version)
    return message_codec(f"{name}Response", version).decode(frame[start:])


class OpenConnection:
    """A connection that sends frames and reads responses in turn."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), _TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = self.socket.makefile("rb")
        #: Bytes of a response that is not there whole yet, see `responses_of`.
        self._kept_bytes = 0

    def send(self, frames: bytes) -> None:
        """Send one frame or several."""
        self.socket.sendall(frames)

    def response(self) -> bytes:
        """Return the next response without its length."""
        (size,) = struct.unpack(">i", self._reader.read(4))
        return self._reader.read(size)

    def responses_of(self, size_bytes: int) -> int:
        """Read what is there; return how many responses of a known size, with its length, it ends.

        It waits for the first byte. A client in Python would else cost more than the broker.
        """
        self._kept_bytes += len(self.socket.recv(_RECEIVED_BYTES))
        count, self._kept_bytes = divmod(self._kept_bytes, size_bytes)
        return count

    def ask(self, name: str, version: int, request: Any) -> Any:
        """Send a request and return its response."""
        self.send(frame_of(name, version, request))
        return _decoded(name, version, self.response())

    def close(self) -> None:
        """Close it."""
        self._reader.close()
        self.socket.close()


def coordinator_is_ready(address: str, groups: Iterable[str]) -> None:
    """Wait until groups have coordinators: the first makes the topic of offsets."""
    connection = OpenConnection(address)
    end_s = time.monotonic() + _TIMEOUT_S
    for group in groups:
        find = messages.FindCoordinatorRequest(key=group, key_type=0)
        fetch = messages.DescribeGroupsRequest(groups=[group])
        while (
            connection.ask("FindCoordinator", _FIND_VERSION, find).error_code != 0
            or connection.ask("DescribeGroups", 5, fetch).groups[0].error_code != 0
        ):
            assert time.monotonic() < end_s, group
            time.sleep(0.1)
    connection.close()


def commit_frame(group: str, topic: str, offset: int) -> bytes:
    """Return a commit of one offset for a group without members."""
    row = messages.OffsetCommitRequest.OffsetCommitRequestTopic
    partition = messages.OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata=""
    )
    request = messages.OffsetCommitRequest(
        group_id=group, topics=[row(name=topic, partitions=[partition])]
    )
    return frame_of("OffsetCommit", _COMMIT_VERSION, request)


class JoinedMember:
    """A member while it joins: which request it waits for."""

    def __init__(self, address: str) -> None:
        self.connection = OpenConnection(address)
        self.member_id = ""
        self.generation = -1
        self.waits_for = ""


def heartbeat_frame(group: str, member: JoinedMember) -> bytes:
    """Return the heartbeat of a member."""
    request = messages.HeartbeatRequest(
        group_id=group, generation_id=member.generation, member_id=member.member_id
    )
    return frame_of("Heartbeat", _HEARTBEAT_VERSION, request)


class Joining:
    """Members of one group, each with a connection, that join until all are of one generation."""

    def __init__(self, address: str, group: str, topic: str, count: int) -> None:
        self.group = group
        self.members = [JoinedMember(address) for _ in range(count)]
        #: A subscription of version 0: one topic, no user data.
        name = topic.encode()
        self._metadata = struct.pack(">hih", 0, 1, len(name)) + name + struct.pack(">i", -1)

    def run(self) -> float:
        """Join; returns how many seconds it took until each has the assignment of the last one."""
        waiting = selectors.DefaultSelector()
        for member in self.members:
            waiting.register(member.connection.socket, selectors.EVENT_READ, member)
        begun_s = time.perf_counter()
        for member in self.members:
            self._join(member)
        end_s = begun_s + _TIMEOUT_S
        last_beat_s = begun_s
        while not self._is_done():
            assert time.perf_counter() < end_s, "the group does not get stable"
            for key, _ in waiting.select(0.01):
                self._respond(key.data)
            if time.perf_counter() - last_beat_s > 0.1:
                last_beat_s = time.perf_counter()
                self._beat()
        waiting.close()
        return time.perf_counter() - begun_s

    def _is_done(self) -> bool:
        generations = {member.generation for member in self.members}
        return len(generations) == 1 and not any(member.waits_for for member in self.members)

    def _join(self, member: JoinedMember) -> None:
        protocol = messages.JoinGroupRequest.JoinGroupRequestProtocol
        request = messages.JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=_SESSION_MS,
            rebalance_timeout_ms=_SESSION_MS,
            member_id=member.member_id,
            protocol_type="consumer",
            protocols=[protocol(name="range", metadata=self._metadata)],
        )
        member.waits_for = "JoinGroup"
        member.connection.send(frame_of("JoinGroup", _JOIN_VERSION, request))

    def _beat(self) -> None:
        """Have members that wait for nothing learn whether the group has gone on."""
        for member in self.members:
            if not member.waits_for:
                member.waits_for = "Heartbeat"
                member.connection.send(heartbeat_frame(self.group, member))

    def _respond(self, member: JoinedMember) -> None:
        if member.waits_for == "JoinGroup":
            self._joined(member)
        elif member.waits_for == "SyncGroup":
            response = _decoded("SyncGroup", _SYNC_VERSION, member.connection.response())
            member.waits_for = ""
            if response.error_code != 0:
                assert response.error_code == _REBALANCE_IN_PROGRESS, response
                self._join(member)
        else:
            frame = member.connection.response()
            response = _decoded("Heartbeat", _HEARTBEAT_VERSION, frame)
            member.waits_for = ""
            if response.error_code != 0:
                assert response.error_code == _REBALANCE_IN_PROGRESS, response
                self._join(member)

    def _joined(self, member: JoinedMember) -> None:
        response = _decoded("JoinGroup", _JOIN_VERSION, member.connection.response())
        member.member_id = response.member_id
        if response.error_code == _MEMBER_ID_REQUIRED:
            self._join(member)
            return
        assert response.error_code == 0, response
        member.generation = response.generation_id
        row = messages.SyncGroupRequest.SyncGroupRequestAssignment
        request = messages.SyncGroupRequest(
            group_id=self.group,
            generation_id=member.generation,
            member_id=member.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                row(member_id=other.member_id, assignment=b"\0" * 10) for other in response.members
            ],
        )
        member.waits_for = "SyncGroup"
        member.connection.send(frame_of("SyncGroup", _SYNC_VERSION, request))

    def leave(self) -> None:
        """Have all leave, and close the connections."""
        identity = messages.LeaveGroupRequest.MemberIdentity
        members = [identity(member_id=member.member_id) for member in self.members]
        request = messages.LeaveGroupRequest(group_id=self.group, members=members)
        self.members[0].connection.ask("LeaveGroup", _LEAVE_VERSION, request)
        for member in self.members:
            member.connection.close()
